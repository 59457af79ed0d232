"""Whether the database is there, and whether controllers work with it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from gpudev.domain.readiness import ControllerBeat


class Health(Protocol):
    async def check(self) -> None:
        """Raise `StoreUnavailable` unless database, queues and schema are as this version needs them."""
        ...

    async def beat(self, name: str, failing: Sequence[str]) -> None:
        """A controller says that it works, and which of its chores keep failing."""
        ...

    async def list_controllers(self) -> tuple[ControllerBeat, ...]:
        """Those that have said so within the last day."""
        ...

    async def claim_for_cluster(self, cluster_id: str) -> bool:
        """Make the database this cluster's, if it is nobody's yet; False if it is another's."""
        ...
