"""`gpu-dev notify`: be told elsewhere what happens to one's reservations."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from gpudev.cli.output import Output, json_option, pass_output, put
from gpudev.texts.vocabulary import TargetKind, Topic

if TYPE_CHECKING:
    from gpudev.wire.notifications import NotificationSettings


@click.group("notify")
def command() -> None:
    """Be told elsewhere what happens to your reservations."""


@command.command("show")
@json_option
@pass_output
def show(output: Output) -> None:
    """Show where your notifications go."""
    from gpudev.client import session

    with session.connect() as client:
        _print(client.notifications(), output)


@command.command("set")
@click.argument("url")
@click.option("--kind", type=click.Choice(list(TargetKind)), default=TargetKind.WEBHOOK, show_default=True)
@click.option(
    "--topic", "topics", multiple=True, type=click.Choice(list(Topic)), help="Only of this; repeatable."
)
@json_option
@pass_output
def set_(output: Output, url: str, kind: str, topics: tuple[str, ...]) -> None:
    """Send your notifications to URL.

    A webhook gets JSON, signed with the secret that is shown now and never again.
    """
    from gpudev.client import session

    with session.connect() as client:
        _print(client.set_notifications(url, kind, topics), output)


@command.command("unset")
@json_option
@pass_output
def unset(output: Output) -> None:
    """Send them nowhere."""
    from gpudev.client import session

    with session.connect() as client:
        _print(client.set_notifications(None), output)


@command.command("test")
@json_option
@pass_output
def test(output: Output) -> None:
    """Send yourself a notification."""
    from gpudev.cli.render.data import format_json
    from gpudev.client import session

    with session.connect() as client:
        answer = client.test_notifications()
    put(format_json(answer) if output.as_json else answer.message)


def _print(settings: NotificationSettings, output: Output) -> None:
    from gpudev.cli.render.data import format_json
    from gpudev.cli.render.table import format_fields

    if output.as_json:
        put(format_json(settings))
        return
    fields = [
        ("Address", settings.url or "none"),
        ("Kind", settings.kind),
        ("Topics", ", ".join(settings.topics)),
        ("Secret", settings.secret),
        ("Allowed", ", ".join(settings.allowed_hosts) or "no hosts"),
    ]
    put(format_fields([(name, value) for name, value in fields if value]))
