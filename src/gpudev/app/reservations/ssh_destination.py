"""The SSH address of the dev server that a user wants to connect to, and whether the user still may."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from gpudev.app.identity.authentication import Authentication, Caller, Visitor
from gpudev.app.reservations.lookup import choose_meant
from gpudev.domain.access import choose_address, may_connect
from gpudev.domain.names import ReservationId, find_id_range
from gpudev.domain.reservation import Reservation
from gpudev.domain.server import SshAddress
from gpudev.ports.clock import Clock
from gpudev.ports.reservations import Reservations
from gpudev.ports.users import ApiKeys


@dataclass(frozen=True, slots=True)
class Destination:
    caller: Caller
    reservation_id: ReservationId
    address: SshAddress


@dataclass(frozen=True, slots=True)
class SshDestinations:
    """`may_connect` has the only word on whom. Others are not told that there is a server."""

    authentication: Authentication
    reservations: Reservations
    api_keys: ApiKeys
    clock: Clock

    async def find(self, visitor: Visitor, text: str, rank: int) -> Destination:
        caller = await self.authentication.authenticate(visitor)
        meant = text.lower() if text.isprintable() else ""
        allowed = (one for one in await self._candidates(caller, meant) if may_connect(one, caller.user_id))
        reservation = choose_meant(meant, allowed)
        return Destination(caller, reservation.id, choose_address(reservation, rank))

    async def _candidates(self, caller: Caller, meant: str) -> tuple[Reservation, ...]:
        """One's own by any name; somebody else's by its whole id alone."""
        own = await self.reservations.list_matching(caller.user_id, meant)
        first, last = find_id_range(meant) or ("", "-")
        return own if own or first != last else await self.reservations.list_matching_of_all(meant)

    async def list_open(self, destinations: Collection[Destination]) -> tuple[Destination, ...]:
        """Those of them to which their users are still led.

        A key ends sooner than people's work does: what it has opened lasts as long as its login, unless the
        key is revoked.
        """
        ids = {one.reservation_id for one in destinations}
        hashes = {one.caller.key_hash for one in destinations}
        connectable = await self.reservations.list_connectable(ids) if ids else frozenset()
        standing = await self.api_keys.list_valid_keys(hashes, self.clock.now()) if hashes else frozenset()
        return tuple(
            one
            for one in destinations
            if one.reservation_id in connectable and one.caller.key_hash in standing
        )
