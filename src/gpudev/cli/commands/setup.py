"""`gpu-dev setup`: from nothing to a server that answers; and `gpu-dev doctor`, which finds out why not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from gpudev.cli.errors import ERROR
from gpudev.cli.output import Output, examples, json_option, pass_output, put, say
from gpudev.cli.screen import can_ask

if TYPE_CHECKING:
    from gpudev.client.config import Surroundings


_OFFERS = {
    "prod": "the service of your team",
    "test": "its test environment",
    "local": "this machine alone: gpu-dev up",
}


@click.command(
    "setup",
    epilog=examples(
        "gpu-dev setup",
        "gpu-dev setup --environment prod --api-url https://gpu-dev.example.org --github-user ada",
    ),
)
@click.option("--environment", metavar="NAME", help="What to call it: prod, test, or a name of your own.")
@click.option("--api-url", metavar="URL", help="Where the server is.")
@click.option("--github-user", metavar="NAME", help="Who you are at GitHub; your keys there are let in.")
@click.pass_context
def setup(
    context: click.Context, environment: str | None, api_url: str | None, github_user: str | None
) -> None:
    """Say where the server is, and try it.

    A person is asked for what is not given. Then the checks of gpu-dev doctor are made.
    """
    from gpudev.cli.doctor_checks import State, examine, format_finding
    from gpudev.cli.program_name import spell
    from gpudev.client.config import read_surroundings

    here = read_surroundings()
    if can_ask():
        environment = environment or _ask_environment()
        if environment == "local":
            put(spell("Run it with: gpu-dev up"))
            return
        api_url = api_url or _ask_address(here, environment)
        github_user = github_user if github_user is not None else _ask_github_user(here)
    if not environment or not api_url:
        raise click.UsageError("There is nobody to ask here: give --environment and --api-url.", context)
    _write(here, environment, api_url, github_user or None)
    findings = list(examine(read_surroundings()))
    for finding in findings:
        put(spell(format_finding(finding)))
    is_well = not any(finding.state is State.BAD for finding in findings)
    say(spell("Next: gpu-dev reserve" if is_well else "Look again with: gpu-dev doctor"))
    context.exit(0 if is_well else 1)


def _ask_environment() -> str:
    from gpudev.cli.terminal.prompts import ask_one

    width = max(map(len, _OFFERS))
    rows = [f"{name:{width}}  {words}" for name, words in _OFFERS.items()]
    return list(_OFFERS)[ask_one("Which server?", rows)]


def _ask_address(here: Surroundings, environment: str) -> str:
    from gpudev.cli.terminal.prompts import ask_text
    from gpudev.client.config import normalise_url, read_settings
    from gpudev.client.config_file import describe_environment
    from gpudev.client.errors import Usage

    known = describe_environment(read_settings(here), environment).get("api_url")
    while True:
        try:
            return normalise_url(ask_text("Its address", known if isinstance(known, str) else None))
        except Usage as error:
            say(f"{error.message} {error.hint}")


def _ask_github_user(here: Surroundings) -> str:
    from gpudev.cli.terminal.prompts import ask_text
    from gpudev.client.config import read_settings

    known = read_settings(here).get("github_user")
    return ask_text("Your name at GitHub (empty: none)", known if isinstance(known, str) else "").strip()


def _write(here: Surroundings, environment: str, api_url: str, github_user: str | None) -> None:
    from gpudev.client.config import normalise_url, read_settings
    from gpudev.client.config_file import set_value, write_config

    content = set_value(
        {**read_settings(here), "environment": environment}, "api_url", normalise_url(api_url)
    )
    if github_user:
        content = set_value(content, "github_user", github_user)
    write_config(here.config_file, content)


@click.command("doctor")
@json_option
@pass_output
@click.pass_context
def doctor(context: click.Context, output: Output) -> None:
    """Check whatever a reservation needs, and say how to mend it.

    SSH and its keys, the keys at GitHub, the server's address, the clock, the versions and the login.
    Nothing is changed, except that a login leaves its key. Exit code 1 if something is not in order.
    """
    from gpudev.cli.doctor_checks import State, encode_findings, examine, format_finding
    from gpudev.cli.program_name import spell
    from gpudev.cli.render.data import format_json
    from gpudev.client.config import read_surroundings

    findings = []
    for finding in examine(read_surroundings()):
        findings.append(finding)
        if not output.as_json:
            put(spell(format_finding(finding)))
    if output.as_json:
        put(format_json(encode_findings(findings)))
    context.exit(ERROR if any(finding.state is State.BAD for finding in findings) else 0)
