"""Show a user's quotas, and what is used of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from gpudev.domain.catalogue import Catalogue
from gpudev.domain.quota import NO_LIMIT, Quota, Quotas, QuotaUse, Use, find_long_limit
from gpudev.ports.clock import Clock
from gpudev.ports.store import GpuTypes
from gpudev.ports.usage import QuotaUses
from gpudev.ports.users import User


@dataclass(frozen=True, slots=True)
class ShowQuotas:
    uses: QuotaUses
    gpu_types: GpuTypes
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
        long_limits = await self._find_long_limits(limited)
        return tuple(
            QuotaUse(name, quota, uses.get(name, Use()), long_limits.get(name))
            for name, quota in limited.items()
        )

    async def _find_long_limits(self, quotas: Mapping[str, Quota]) -> dict[str, int | None]:
        """By the nodes that were in service when admission looked last."""
        if all(quota.long_share is None for quota in quotas.values()):
            return {}
        stored = [one.availability for one in await self.gpu_types.list_availability()]
        return {
            one.gpu_type: find_long_limit(quotas[one.gpu_type], one.total, one.nodes)
            for one in stored
            if one.gpu_type in quotas
        }
