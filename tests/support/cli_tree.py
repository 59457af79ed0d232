"""The commands of `gpu-dev` as the code has them, and an example of how each is typed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import click

from gpudev.cli.main import root

ID = "ID"
"""Stands for a reservation, a disk or a user in an example."""

EXAMPLES: dict[str, str] = {
    "reserve": "-t t4 -g 1 -H 1",
    "list": "",
    "show": "ID",
    "why": "ID",
    "logs": "ID",
    "connect": "ID",
    "extend": "ID 1",
    "edit": "ID --extend 1",
    "keep": "ID 2h",
    "stop": "ID --yes",
    "start": "ID",
    "cancel": "ID",
    "submit": "-t t4 -g 1 -H 1 true",
    "wait": "ID",
    "cp": "ID:results .",
    "open": "vscode ID",
    "ssh-proxy": "ID",
    "disk list": "",
    "disk show": "ID",
    "disk create": "work",
    "disk clone": "ID copy",
    "disk grow": "ID 200",
    "disk rename": "ID other",
    "disk delete": "ID",
    "disk restore": "ID",
    "disk list-content": "ID",
    "disk snapshots": "ID",
    "avail": "",
    "queue": "",
    "status": "",
    "notify show": "",
    "notify set": "https://hooks.example.org/x",
    "notify unset": "",
    "notify test": "",
    "doctor": "",
    "login": "",
    "whoami": "",
    "admin users": "",
    "admin users disable": "ID",
    "admin users enable": "ID",
    "admin usage": "",
    "admin audit": "",
    "admin audit verify": "",
    "admin disks check": "",
    "admin nodes": "",
    "admin drain": "ID",
    "admin undrain": "ID",
    "admin dead-letters": "",
    "admin dead-letters retry": "ID",
    "admin dead-letters drop": "ID",
}
WITHOUT_A_SERVER = (
    "setup",
    "config show",
    "config set",
    "config unset",
    "config environment",
    "config ssh-include",
    "completion",
    "up",
    "down",
    "server api",
    "server controller",
    "server expire",
    "server availability",
    "server migrate",
    "server ssh-proxy",
    "admin simulate",
)
"""They ask no server, or are one; `setup` asks it what `doctor` asks."""


@dataclass(frozen=True, slots=True)
class Leaf:
    """A command that can be run."""

    path: str
    has_json: bool

    @property
    def example(self) -> str:
        return EXAMPLES[self.path]

    @property
    def takes_id(self) -> bool:
        return any(word.partition(":")[0] == ID for word in self.example.split())

    @property
    def takes_reservation(self) -> bool:
        return self.takes_id and " " not in self.path

    def words(self, thing: str = "nosuch") -> list[str]:
        typed = (re.sub(rf"^{ID}(?=:|$)", thing, word) for word in self.example.split())
        return [*self.path.split(), *typed]


def list_leaves() -> list[Leaf]:
    """Those that talk to a server."""
    return [leaf for leaf in _walk(root, "") if leaf.path not in WITHOUT_A_SERVER]


def list_paths() -> list[str]:
    return [leaf.path for leaf in _walk(root, "")]


def _walk(command: click.Command, path: str) -> Iterator[Leaf]:
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            child = command.get_command(context, name)
            assert child is not None
            yield from _walk(child, f"{path} {name}".strip())
        if not command.invoke_without_command:
            return
    yield Leaf(path, any(parameter.name == "json" for parameter in command.params))
