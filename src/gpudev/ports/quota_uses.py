"""What users have of each GPU type, as quotas count it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Protocol

from gpudev.domain.names import UserId
from gpudev.domain.quota import Use


class QuotaUses(Protocol):
    async def read_use(
        self, user_id: UserId, since: Mapping[str, datetime], now: datetime
    ) -> Mapping[str, Use]:
        """What a user has of each of these GPU types; `since` is when the period of its GPU-hours began."""
        ...
