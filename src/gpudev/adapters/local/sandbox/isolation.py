"""How well dev servers on this machine are kept apart."""

from __future__ import annotations

from enum import StrEnum

from gpudev.adapters.local.sandbox.bubblewrap import find_program


class Isolation(StrEnum):
    BUBBLEWRAP = "bubblewrap"
    """Each dev server in a sandbox with its own root, processes, files and shared memory."""
    NONE = "none"
    """Plain processes of the user who started gpu-dev."""

    @property
    def sentence(self) -> str:
        return _SENTENCES[self]


_SENTENCES = {
    Isolation.BUBBLEWRAP: (
        "Dev servers are sandboxed with bubblewrap: they do not see each other's files, processes and "
        "shared memory. They share the machine's network."
    ),
    Isolation.NONE: (
        "Dev servers are NOT isolated: everyone who logs in can read and change everything that the user "
        "who started gpu-dev can."
    ),
}


def probe_isolation() -> Isolation:
    """The best that works here."""
    return Isolation.BUBBLEWRAP if find_program().program else Isolation.NONE
