"""`gpu-dev server`: one process of the service, as a deployment runs it."""

from __future__ import annotations

import click

from gpudev.cli.output import put, say
from gpudev.client.errors import ClientError


@click.group("server")
def command() -> None:
    """Run one part of the server; settings come from the environment."""


@command.command("api")
def api() -> None:
    """Serve the HTTP API until stopped."""
    from gpudev.bootstrap import Failure
    from gpudev.bootstrap.api import run_api

    try:
        run_api()
    except Failure as error:
        raise ClientError(error.message, hint=error.hint, code=error.code) from error


@command.command("controller")
def controller() -> None:
    """Turn reservations into dev servers until stopped."""
    from gpudev.bootstrap.controller import run_controller

    run_controller()


@command.command("ssh-proxy")
def ssh_proxy() -> None:
    """Lead SSH connections to dev servers until stopped."""
    from gpudev.bootstrap.ssh_proxy import run_ssh_proxy

    run_ssh_proxy()


@command.command("expire")
@click.option("--once", is_flag=True, required=True, help="Look at everything that is due, and end.")
@click.pass_context
def expire(context: click.Context, *, once: bool) -> None:
    """Do what the clock demands: warn, extend, end, give up. For a job that runs every few minutes.

    The controller does the same all the time. What needs the cluster, such as taking a server down, is left
    to it.
    """
    from gpudev.bootstrap.jobs import run_expire

    if not once:
        raise click.UsageError("The controller expires all the time; a job does it --once.", context)
    outcomes = run_expire()
    put(" ".join(f"{name}={count}" for name, count in outcomes.items()))
    context.exit(1 if outcomes["failed"] else 0)


@command.command("availability")
@click.pass_context
def availability(context: click.Context) -> None:
    """Write down what room there is of each GPU type, and reconcile disks with their storage.

    For a job that runs every few minutes.
    """
    from gpudev.bootstrap import Failure
    from gpudev.bootstrap.jobs import run_availability

    try:
        looked = run_availability()
    except Failure as error:
        say(f"Error: {error.message}")
        context.exit(1)
    put(f"looked at {', '.join(looked.gpu_types)}")
    put(looked.disks)


@command.command("migrate")
def migrate() -> None:
    """Bring the database schema up to date."""
    from gpudev.bootstrap import Failure
    from gpudev.bootstrap.foundation import run_migrations

    try:
        applied = run_migrations()
    except Failure as error:
        raise ClientError(error.message, hint=error.hint, code=error.code) from error
    for name in applied:
        put(f"applied {name}")
