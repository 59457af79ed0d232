"""The scripts that the client runs on a dev server, as they are shipped."""

from __future__ import annotations

from functools import cache
from importlib.resources import files


@cache
def read_script(name: str) -> str:
    return files(__name__).joinpath(f"{name}.sh").read_text("utf-8")
