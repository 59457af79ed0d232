"""Stands around every way to log in: counts and writes down what fails, and stops who fails too often.

The count is kept in the database, for all replicas together. A failure is written right after it
happened, in a transaction of its own: there is no action that it could belong to. A success is written
together with the key that it gives.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta

from gpudev.app.limits import origin_of
from gpudev.app.login import LoginOrigin
from gpudev.domain.audit import AuditAction, AuditEntry, AuditOutcome, tidy
from gpudev.domain.errors import NotAllowed, ProofNeeded, TooManyRequests, Unauthenticated
from gpudev.domain.limits import NO_WAIT, find_wait
from gpudev.ports.api_keys import LoginFailures
from gpudev.ports.audit import AuditLog
from gpudev.ports.clock import Clock


@dataclass(frozen=True, slots=True)
class LoginGuard:
    failures: LoginFailures
    audit: AuditLog
    clock: Clock
    limit: int
    """So many failures from one origin within the window, and then none is looked at any more."""
    window: timedelta

    @asynccontextmanager
    async def __call__(self, origin: LoginOrigin) -> AsyncIterator[None]:
        await self._check(origin)
        try:
            yield
        except (Unauthenticated, NotAllowed) as error:
            # Who is asked for one more proof has shown who they are: that is the way of a first login.
            if not isinstance(error, ProofNeeded):
                await self.failures.count(origin_of(origin.address), self.clock.now(), self.window)
            await self.audit.write(_failed(origin, error.message))
            raise

    async def _check(self, origin: LoginOrigin) -> None:
        now = self.clock.now()
        blocking = await self.failures.find_blocking(origin_of(origin.address), now - self.window, self.limit)
        wait = find_wait(blocking, self.window, now)
        if wait > NO_WAIT:
            raise TooManyRequests(
                "Too many logins from this address have failed.",
                retry_after=wait,
                hint="Wait for Retry-After seconds, and check with what you log in.",
                code="too_many_failed_logins",
            )


def _failed(origin: LoginOrigin, message: str) -> AuditEntry:
    return AuditEntry(
        username="",
        action=AuditAction.LOGIN,
        target=origin.method,
        address=origin.address,
        outcome=AuditOutcome.REFUSED,
        detail=tidy(message),
    )
