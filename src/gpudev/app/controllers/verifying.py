"""A slow chore beside the controllers: verifies the audit log, and says in metrics what came of it.

The last seal that was in order is remembered as the anchor of the next verification, so that a log whose end
is cut off is found, which the log cannot show by itself. The number and hash of each go into the log of the
process as well: kept elsewhere, they are anchors that also outlive it.
"""

from __future__ import annotations

import structlog

from gpudev.app.admin import Anchor, Verification, verify
from gpudev.ports.audit import AuditLog
from gpudev.ports.clock import Clock
from gpudev.telemetry import AUDIT_FINDINGS, AUDIT_SEALS, AUDIT_VERIFIED_TIME

_SHOWN = 10
"""Findings that are written to the log of the process; the rest is told by `gpu-dev admin audit verify`."""

_log = structlog.get_logger(__name__)


class VerifyAudit:
    def __init__(self, audit: AuditLog, clock: Clock) -> None:
        self._audit = audit
        self._clock = clock
        self._anchor: Anchor | None = None

    async def __call__(self) -> Verification:
        found = await verify(self._audit, self._anchor)
        AUDIT_FINDINGS.set(len(found.findings))
        AUDIT_SEALS.set(found.last.number if found.last else 0)
        AUDIT_VERIFIED_TIME.set(self._clock.now().timestamp())
        if found.findings:
            words = [finding.message for finding in found.findings[:_SHOWN]]
            _log.error("audit_not_intact", findings=len(found.findings), first=words)
        elif found.last is not None:
            self._anchor = Anchor(found.last.number, found.last.hash)
            _log.info("audit_verified", seal=found.last.number, hash=found.last.hash.hex())
        return found
