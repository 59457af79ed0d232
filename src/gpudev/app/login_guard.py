"""Stands around every way to log in: counts and writes down what fails, and limits who fails too often.

Whoever logs in correctly is let in, however many others have failed from the same address: the count is
looked at after a login has failed, never before. What an address over the limit costs is bounded all the
same: its failures are neither counted nor written one by one any more, and of its logins that AWS has to be
asked about only a few are worked on at once, so that the others have room.

The count is kept in the database, for all replicas together. A failure is written right after it happened, in
a transaction of its own: there is no action that it could belong to. A success is written together with the
key that it gives.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from datetime import datetime, timedelta

from gpudev.app.audit_tally import AuditTally
from gpudev.app.limits import origin_of
from gpudev.app.login import LoginOrigin
from gpudev.domain.audit import AuditAction, AuditEntry, AuditOutcome, tidy
from gpudev.domain.errors import NotAllowed, ProofNeeded, TooManyRequests, Unauthenticated
from gpudev.domain.limits import NO_WAIT, find_wait
from gpudev.ports.api_keys import LoginFailures
from gpudev.ports.clock import Clock
from gpudev.texts.fact import fact
from gpudev.texts.sentences import say

SUSPECTS_AT_ONCE = 4
"""Logins of addresses over the limit that are verified at once, in each process, where that takes a while."""
MAX_BLOCKED = 10_000
"""Addresses that a process remembers to be over the limit; one that is forgotten is looked up again."""


class LoginGuard:
    def __init__(
        self, failures: LoginFailures, tally: AuditTally, clock: Clock, limit: int, window: timedelta
    ) -> None:
        """So many failures from one origin within the window, and the next ones are answered 429."""
        self._failures = failures
        self._tally = tally
        self._clock = clock
        self._limit = limit
        self._window = window
        self._blocked: OrderedDict[str, datetime] = OrderedDict()
        self._suspects = asyncio.Semaphore(SUSPECTS_AT_ONCE)

    @asynccontextmanager
    async def __call__(self, origin: LoginOrigin) -> AsyncIterator[None]:
        try:
            async with self._lane_of(origin):
                yield
        except ProofNeeded as error:
            # Who is asked for one more proof has shown who they are: that is the way of a first login.
            await self._tally.write(_failed(origin, error.message))
            raise
        except (Unauthenticated, NotAllowed) as error:
            if wait := await self._count(origin_of(origin.address)):
                self._tally.note(_failed(origin, say(fact("audit_login_failed_often"))))
                raise _too_many(wait) from error
            await self._tally.write(_failed(origin, error.message))
            raise

    def _lane_of(self, origin: LoginOrigin) -> AbstractAsyncContextManager[object]:
        is_quick = origin.method == "local"
        return nullcontext() if is_quick or not self._wait_of(origin_of(origin.address)) else self._suspects

    async def _count(self, origin: str) -> timedelta:
        """One more failure; how long until one of this origin is answered as such again."""
        if wait := self._wait_of(origin):
            return wait
        now = self._clock.now()
        blocking = await self._failures.find_blocking(origin, now - self._window, self._limit)
        if wait := find_wait(blocking, self._window, now):
            self._remember(origin, now + wait)
            return wait
        await self._failures.count(origin, now, self._window)
        return NO_WAIT

    def _wait_of(self, origin: str) -> timedelta:
        until = self._blocked.get(origin)
        return max(NO_WAIT, until - self._clock.now()) if until else NO_WAIT

    def _remember(self, origin: str, until: datetime) -> None:
        self._blocked[origin] = until
        self._blocked.move_to_end(origin)
        if len(self._blocked) > MAX_BLOCKED:
            self._blocked.popitem(last=False)


def _too_many(wait: timedelta) -> TooManyRequests:
    return TooManyRequests("too_many_failed_logins", retry_after=wait, code="too_many_failed_logins")


def _failed(origin: LoginOrigin, message: str) -> AuditEntry:
    return AuditEntry(
        username="",
        action=AuditAction.LOGIN,
        target=origin.method,
        address=origin.address,
        outcome=AuditOutcome.REFUSED,
        detail=tidy(message),
    )
