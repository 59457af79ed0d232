"""How well dev servers on this machine are kept apart."""

from __future__ import annotations

from enum import StrEnum

from gpudev.adapters.local.sandbox.bubblewrap import find_program
from gpudev.texts.fact import Fact, fact
from gpudev.texts.sentences import say


class Isolation(StrEnum):
    BUBBLEWRAP = "bubblewrap"
    """Each dev server in a sandbox with its own root, processes, files and shared memory."""
    NONE = "none"
    """Plain processes of the user who started gpu-dev."""

    @property
    def told(self) -> Fact:
        if self is Isolation.BUBBLEWRAP:
            return fact("isolated_by_bubblewrap")
        return fact("not_isolated")

    @property
    def sentence(self) -> str:
        return say(self.told)


def probe_isolation() -> Isolation:
    """The best that works here."""
    return Isolation.BUBBLEWRAP if find_program().program else Isolation.NONE
