"""Show a user's quotas, and what is used of them."""

from __future__ import annotations

from dataclasses import dataclass

from gpudev.domain.catalogue import Catalogue
from gpudev.domain.quota import NO_LIMIT, Quotas, QuotaUse, Use
from gpudev.ports.clock import Clock
from gpudev.ports.usage import QuotaUses
from gpudev.ports.users import User


@dataclass(frozen=True, slots=True)
class ShowQuotas:
    uses: QuotaUses
    catalogue: Catalogue
    quotas: Quotas
    clock: Clock

    async def __call__(self, user: User) -> tuple[QuotaUse, ...]:
        """One for each GPU type that is limited, in the order of the catalogue."""
        names = [gpu_type.name for gpu_type in self.catalogue.types]
        found = {name: self.quotas.find(user.username, name) for name in names}
        limited = {name: quota for name, quota in found.items() if quota != NO_LIMIT}
        if not limited:
            return ()
        now = self.clock.now()
        since = {name: now - quota.period for name, quota in limited.items()}
        uses = await self.uses.read_use(user.user_id, since, now)
        return tuple(QuotaUse(name, quota, uses.get(name, Use())) for name, quota in limited.items())
