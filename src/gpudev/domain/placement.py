"""Which ready address a server gets; on which nodes it goes is decided by the plan, see `schedule`."""

from __future__ import annotations

from collections.abc import Sequence

from gpudev.domain.names import ReservationId, id8


def choose_port_slot(free: Sequence[str], reservation_id: ReservationId) -> str:
    """One of the ready addresses, or none. Passes for other types choose at the same time: not the same."""
    return free[int(id8(reservation_id), 16) % len(free)] if free else ""
