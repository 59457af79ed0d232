"""Editors that open a folder of a dev server by themselves, over SSH: how each is started."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import quote

from gpudev.client.errors import ClientError


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
