"""How dev servers of this machine are kept apart: what the settings want, or the best that works."""

from __future__ import annotations

from dataclasses import dataclass

from gpudev.adapters.local.sandbox.isolation import (
    Choice,
    Isolation,
    Remedy,
    choose_remedy,
    find_obstacles,
    find_program,
)
from gpudev.domain.errors import Invalid
from gpudev.settings.servers import LocalSettings
from gpudev.texts.fact import fact


@dataclass(frozen=True, slots=True)
class Sandboxing:
    isolation: Isolation
    program: str = ""
    """The bubblewrap to use; empty: the first that is installed."""
    remedy: Remedy | None = None
    """For where there is no sandbox."""

    @property
    def sentence(self) -> str:
        help_ = f" {self.remedy.sentence}" if self.remedy else ""
        return f"{self.isolation.sentence}{help_}"


def find_sandboxing(local: LocalSettings) -> Sandboxing:
    """Try what the settings leave open. A sandbox that is asked for and does not work is an error."""
    if local.isolation == Isolation.NONE.value:
        return _without_sandbox(Choice(), is_asked_for=True)
    choice = find_program(local.bubblewrap)
    if choice.program:
        return Sandboxing(Isolation.BUBBLEWRAP, choice.program)
    found = _without_sandbox(choice, is_asked_for=False)
    if local.isolation == Isolation.BUBBLEWRAP.value and found.remedy:
        raise Invalid(
            "wanted_sandbox_does_not_work",
            remedy=found.remedy.advice,
            lines=found.remedy.lines,
            code="no_sandbox",
        )
    return found


def read_sandboxing(local: LocalSettings) -> Sandboxing:
    """What `gpu-dev up` has found out and passed on in the settings; without it, tried now."""
    if not local.isolation:
        return find_sandboxing(local)
    isolation = Isolation(local.isolation)
    remedy = Remedy(fact("words", words=local.isolation_note)) if local.isolation_note else None
    return Sandboxing(isolation, local.bubblewrap, remedy)


def _without_sandbox(choice: Choice, *, is_asked_for: bool) -> Sandboxing:
    obstacles = find_obstacles(choice.problems, is_asked_for=is_asked_for)
    return Sandboxing(Isolation.NONE, remedy=choose_remedy(obstacles))
