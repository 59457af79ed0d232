"""`gpu-dev open`: an editor that opens a folder of a dev server by itself, over SSH."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import quote

import click

from gpudev.cli.completion import complete_with
from gpudev.cli.output import confirm, say
from gpudev.cli.screen import can_ask
from gpudev.client.errors import ClientError

if TYPE_CHECKING:
    from gpudev.client.config import Surroundings


@dataclass(frozen=True, slots=True)
class Editor:
    title: str
    program: str
    scheme: str
    """Of the addresses that it opens."""

    def words(self, host: str, folder: str) -> list[str]:
        return [self.program, "--remote", f"ssh-remote+{host}", folder]

    def address(self, host: str, folder: str) -> str:
        return f"{self.scheme}://vscode-remote/ssh-remote+{host}{quote(folder)}"

    def missing(self, host: str, folder: str) -> ClientError:
        return ClientError(
            f"{self.title} is not installed here, or its command `{self.program}` is not on the PATH.",
            hint=f"In {self.title}, run “Shell Command: Install '{self.program}' command in PATH”. "
            f"Or open this address: {self.address(host, folder)}",
            code="no_program",
        )


EDITORS = {
    "vscode": Editor("VS Code", "code", "vscode"),
    "cursor": Editor("Cursor", "cursor", "cursor"),
}
NAMES: Sequence[str] = tuple(EDITORS)


@click.command("open")
@click.argument("editor", type=click.Choice(NAMES))
@click.argument("reservation", metavar="[ID]", required=False, shell_complete=complete_with("reservations"))
@click.option("--folder", metavar="PATH", help="What to open there.  [default: the home]")
@click.option("--node", metavar="N", type=int, default=0, help="Of several nodes, the one of this rank.")
@click.pass_context
def command(
    context: click.Context, editor: str, reservation: str | None, folder: str | None, node: int
) -> None:
    """Open VS Code or Cursor on a dev server, over SSH.

    Without ID: your only active reservation. The editor finds the server by one line in your own SSH
    configuration, which is added if you say so; see gpu-dev config ssh-include.
    """
    import shutil

    from gpudev.cli.selection import get_active
    from gpudev.client import session
    from gpudev.client.dev_server import attach, get_node
    from gpudev.client.programs import run_program

    chosen = EDITORS[editor]
    with session.connect() as client:
        _check_included(client.surroundings)
        box = attach(get_active(client, reservation).job_id, client=client)
        host = get_node(box.nodes, node, box.id).alias
        place = folder or box.run("pwd", node=node).stdout.strip()
    if shutil.which(chosen.program) is None:
        raise chosen.missing(host, place)
    say(f"Opening {place} on {host} in {chosen.title}.")
    context.exit(run_program(chosen.words(host, place), capture=False).exit_code)


def _check_included(surroundings: Surroundings) -> None:
    """The editor reads the user's own configuration: without the line it does not know the host."""
    from gpudev.client.errors import ClientError
    from gpudev.client.ssh_include import include, include_line, is_included, list_files

    if is_included(surroundings):
        return
    files = " and ".join(str(file) for file in list_files(surroundings))
    line = include_line(surroundings)
    if can_ask() and confirm(f'Add the line "{line}" to {files}?', default=True):
        include(surroundings)
        return
    raise ClientError(
        f'The editor finds dev servers by the line "{line}" in {files}, which is not there.',
        hint="Add it with: gpu-dev config ssh-include",
        code="not_included",
    )
