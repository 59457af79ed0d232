"""What `up` is asked for, and what there is to say when it is done.

Apart from what runs the control plane, which takes half a second to import: `down` and a detached `up` do
without it.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class UpOptions:
    port: int | None = None
    fleet: str = ""
    cluster: str = ""
    """`local` or `kubernetes`; empty: as the settings say."""


@dataclass(frozen=True, slots=True)
class Ready:
    """What there is to say once everything answers."""

    api_url: str
    metrics_url: str
    state_dir: str
    login_file: str
    fleet: str
    """The nodes in words, simulated ones called so."""
    isolation: str
    remedy: str = ""
    """Lines to copy, where they would make sandboxes possible."""
    limits: str = ""
    """Which limits dev servers have here, and which they do not."""
    socket_file: str = ""
    """The unix socket of the API."""
    taken_port: int | None = None
    """The usual port, where another program has it and nobody said which to take instead."""
