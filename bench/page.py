"""The page of results: one section a benchmark, each replaced by its own next run and by nothing else."""

from __future__ import annotations

import os
import platform
import re
from dataclasses import dataclass
from datetime import date
from pathlib import Path

PAGE = Path(__file__).parent.parent / "docs" / "reference" / "benchmarks.md"

_OPENING = """\
# Benchmarks

Each section is written by the command that it names, and only by that. The machines are small and not ours
alone: read the differences and ratios, which were measured in turns within one run, before the times.
"""
_NEXT_SECTION = re.compile(r"^(?=## )", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Section:
    title: str
    command: str
    body: str

    def text(self, conditions: str) -> str:
        return f"## {self.title}\n\n`{self.command}`, {conditions}.\n\n{self.body.strip()}\n"


def describe_conditions(day: date) -> str:
    cores = len(os.sched_getaffinity(0))
    return (
        f"{day.isoformat()}, on {cores} core{'' if cores == 1 else 's'} ({platform.machine()}), "
        f"{platform.system()} {platform.release()}, Python {platform.python_version()}, "
        f"load average {os.getloadavg()[0]:.1f} when it began"
    )


def write_section(section: Section, conditions: str, path: Path = PAGE) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    before = path.read_text(encoding="utf-8") if path.exists() else _OPENING
    path.write_text(replace_section(before, section, conditions), encoding="utf-8")


def replace_section(page: str, section: Section, conditions: str) -> str:
    """The page with this section in the place of its older self, or at the end if it is new."""
    opening, *others = _NEXT_SECTION.split(page)
    fresh = section.text(conditions)
    titles = [other.splitlines()[0].removeprefix("## ").strip() for other in others]
    if section.title in titles:
        others[titles.index(section.title)] = fresh
    else:
        others.append(fresh)
    return "\n".join(f"{part.rstrip()}\n" for part in (opening, *others))
