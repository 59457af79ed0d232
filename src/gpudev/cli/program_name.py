"""The name of this program as it can be typed here: right after a clone it is not on the PATH."""

from __future__ import annotations

import re
import shlex
import shutil
import sys
from pathlib import Path

_COMMAND = re.compile(r"(^ *|(?<=[:,] ))gpu-dev(?= [a-z])", re.MULTILINE)
"""The program where a sentence tells to type it: at the start of a line, or after a colon or comma."""


def spell(text: str) -> str:
    """The text with every `gpu-dev ...` command in it spelled so that it works as typed."""
    program = find_program()
    return text if program == "gpu-dev" else _COMMAND.sub(lambda match: f"{match.group(1)}{program}", text)


def find_program() -> str:
    """`gpu-dev` where that is found on the PATH, else the path of the program that runs now."""
    program = Path(sys.argv[0])
    if shutil.which("gpu-dev") or program.name != "gpu-dev":
        return "gpu-dev"
    try:
        program = program.absolute().relative_to(Path.cwd())
    except ValueError:
        program = program.absolute()
    return shlex.quote(str(program))
