"""What the command of `gpu-dev submit` has written so far, read on its dev server."""

from __future__ import annotations

from collections.abc import Callable

from gpudev.client import remote
from gpudev.client.box import Box
from gpudev.client.programs import run_program, stream_program
from gpudev.client.ssh import id8


def find_offset(box: Box, tail: int | None) -> int | None:
    """Where its last lines begin. None where no command was started, or where nobody here may log in."""
    lines = "" if tail is None else str(tail)
    command = remote.script_command("output", _run_of(box), lines)
    finished = run_program(box.nodes[0].ssh(command))
    return int(finished.stdout) if finished.exit_code == 0 else None


def pass_output(box: Box, offset: int, write: Callable[[bytes], object], *, follow: bool) -> None:
    """From there on; `follow` goes on until the command is over."""
    command = remote.script_command("follow", _run_of(box), str(offset), "" if follow else "0")
    stream_program(box.nodes[0].ssh(command), write)


def _run_of(box: Box) -> str:
    return f"submit/{id8(box.id)}/run"
