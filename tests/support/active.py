"""An active reservation in the database, without a cluster."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from gpudev.bootstrap.foundation import Stores
from gpudev.domain.names import NodeName
from gpudev.domain.plans.turn import Record
from gpudev.domain.reservation import Event, Reservation, activate, place
from gpudev.domain.server import Member, SshAddress
from gpudev.ports.users import User
from gpudev.texts.fact import fact
from gpudev.texts.vocabulary import EventKind
from tests.support.parts import change
from tests.support.reservations import make_reservation, submit

ADDRESS = SshAddress("127.0.0.1", 30022)


async def make_active(
    stores: Stores, user: User, *, now: datetime | None = None, **changes: Any
) -> Reservation:
    """As if it had been placed and had answered at `now`; the changes are made to what it is then."""
    at = now or datetime.now(UTC)
    asked = await submit(stores, make_reservation(user, created_at=at))
    claim = await stores.reservations.claim(asked.id, timedelta(seconds=30))
    assert claim is not None
    placed = Record(
        asked,
        place(asked, (NodeName("t4-0"),), at),
        Event(EventKind.PLACED, fact("words", words="Placed."), at),
    )
    placed_now = await stores.reservations.record(claim, placed)
    members = (Member(NodeName("t4-0"), ADDRESS, ("ssh-ed25519 AAAA",)),)
    active = change(activate(placed_now, members, at), **changes)
    begun = Record(placed_now, active, Event(EventKind.ACTIVE, active.state.detail, at))
    running = await stores.reservations.record(claim, begun)
    await stores.turns.end(claim.lease, at + timedelta(minutes=5))
    return running
