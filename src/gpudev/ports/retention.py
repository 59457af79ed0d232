"""Rows that have done their work and are kept for a while, until nobody needs them any more."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol


class Retention(Protocol):
    """Each method deletes at most `limit` rows and says how many it did.

    Rows that another replica is deleting are passed over, so that nobody waits for anybody. Raises
    `StoreUnavailable` when the database does not answer.
    """

    async def delete_keys(self, before: datetime, limit: int) -> int:
        """API keys that ended before then, but for each user's last: it tells when they were here."""
        ...

    async def delete_proofs(self, before: datetime, limit: int) -> int:
        """One-time proofs and challenges that could not be shown any more before then."""
        ...

    async def delete_messages(self, before: datetime, limit: int) -> int:
        """Messages that were archived before then."""
        ...
