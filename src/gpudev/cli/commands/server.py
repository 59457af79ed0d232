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
    from gpudev.settings import Settings

    run_api(Settings())


@command.command("controller")
def controller() -> None:
    """Turn reservations into dev servers until stopped."""
    from gpudev.bootstrap.controller import run_controller
    from gpudev.settings import Settings

    run_controller(Settings())


@command.command("migrate")
def migrate() -> None:
    """Bring the database schema up to date."""
    import asyncio

    from gpudev.bootstrap.foundation import prepare_database
    from gpudev.settings import Settings

    for name in asyncio.run(prepare_database(Settings())):
        put(f"applied {name}")
