"""Who is calling: a user, from where, and whether as an admin."""

from __future__ import annotations

from dataclasses import dataclass, field

from gpudev.domain.audit import AuditEntry, AuditOutcome, tidy
from gpudev.ports.users import User


@dataclass(frozen=True, slots=True)
class Caller(User):
    address: str = ""
    is_admin: bool = False
    key_hash: bytes = field(default=b"", repr=False)
    """Which of the user's keys was used."""

    def entry(
        self, action: str, target: str = "", *, detail: str = "", outcome: str = AuditOutcome.DONE
    ) -> AuditEntry:
        """What this caller does, for the audit log."""
        return AuditEntry(self.username, action, tidy(target), self.address, outcome, tidy(detail))
