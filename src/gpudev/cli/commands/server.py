"""`gpu-dev server`: one process of the service, as a deployment runs it."""

from __future__ import annotations

import click

from gpudev.cli.output import put


@click.group("server")
def command() -> None:
    """Run one part of the server; settings come from the environment."""


@command.command("api")
def api() -> None:
    """Serve the HTTP API until stopped."""
    from gpudev.bootstrap.api import run_api

    run_api()


@command.command("controller")
def controller() -> None:
    """Turn reservations into dev servers until stopped."""
    from gpudev.bootstrap.controller import run_controller

    run_controller()


@command.command("availability")
def availability() -> None:
    """Reconcile disks with their storage, once, as a CronJob does."""
    from gpudev.bootstrap.reconciliation import run_availability

    put(run_availability())


@command.command("migrate")
def migrate() -> None:
    """Bring the database schema up to date."""
    from gpudev.bootstrap.foundation import run_migrations

    for name in run_migrations():
        put(f"applied {name}")
