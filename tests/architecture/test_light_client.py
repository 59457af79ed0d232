"""The client starts fast because it imports little: nothing of the server, nothing heavy unless needed."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

import gpudev
from tests.architecture.source_tree import MODULES

SERVER_LIBRARIES = {
    "aiohttp",
    "asyncpg",
    "asyncssh",
    "boto3",
    "fastapi",
    "pgmq",
    "prometheus_client",
    "pydantic",
    "pydantic_settings",
    "starlette",
    "structlog",
    "uvicorn",
}
IMPORT_AND_TELL = """
import importlib, json, sys
for name in sys.argv[1:]:
    importlib.import_module(name)
print(json.dumps(list(sys.modules)))
"""
CLIENT_SIDE = {"cli", "client", "texts", "wire"}
CLIENT_MODULES = [module.name for module in MODULES if module.name.split(".")[1:2] in (["cli"], ["client"])]


def import_all(*names: str) -> set[str]:
    """Every module that a fresh interpreter holds after importing these."""
    answer = subprocess.run(
        [sys.executable, "-c", IMPORT_AND_TELL, *names], capture_output=True, text=True, check=True
    )
    return set(json.loads(answer.stdout))


def test_start_of_the_command_line_loads_neither_server_libraries_nor_rich() -> None:
    loaded = {name.split(".")[0] for name in import_all("gpudev.cli.main")}
    assert not loaded & {*SERVER_LIBRARIES, "asyncio", "httpx", "requests", "rich"}


def test_help_of_a_command_loads_nothing_that_talks_to_a_server() -> None:
    commands = [module.name for module in MODULES if module.name.startswith("gpudev.cli.commands.")]
    loaded = import_all("gpudev.cli.main", *commands)
    assert not loaded & {"gpudev.client.http", "gpudev.client.session", "gpudev.wire.jobs", "http.client"}


def test_what_is_typed_most_loads_no_dataclasses_before_it_runs() -> None:
    loaded = import_all(
        "gpudev.cli.main", *(f"gpudev.cli.commands.{name}" for name in ("reservations", "connect"))
    )
    assert not loaded & {"dataclasses", "pathlib", "subprocess", "gpudev.cli.time_options"}


def test_a_session_loads_nothing_of_the_wire_but_reservations() -> None:
    loaded = {name for name in import_all("gpudev.client.session") if name.startswith("gpudev.wire.")}
    assert loaded == {f"gpudev.wire.{name}" for name in ("jobs", "message", "text", "versions")}


def test_the_library_is_loaded_only_when_it_is_used() -> None:
    ours = {name for name in import_all("gpudev") if name.startswith("gpudev")}
    assert ours == {"gpudev"}


def test_every_name_of_the_library_is_there() -> None:
    missing = [name for name in gpudev._PLACES if not hasattr(gpudev, name)]
    assert missing == []
    assert set(gpudev._PLACES) <= set(dir(gpudev))
    assert not hasattr(gpudev, "nothing")


@pytest.mark.skipif(not CLIENT_MODULES, reason="there is no client yet")
def test_no_module_of_the_client_side_loads_anything_of_the_server() -> None:
    loaded = import_all(*CLIENT_MODULES)
    assert not {name.split(".")[0] for name in loaded} & SERVER_LIBRARIES
    ours = {name.split(".")[1] for name in loaded if name.startswith("gpudev.")}
    assert ours <= CLIENT_SIDE


def test_wire_is_plain_python() -> None:
    loaded = import_all(*(module.name for module in MODULES if module.name.startswith("gpudev.wire")))
    assert not {name.split(".")[0] for name in loaded} & SERVER_LIBRARIES
