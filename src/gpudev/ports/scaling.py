"""The groups of machines that a cloud keeps for us."""

from __future__ import annotations

from typing import Protocol

from gpudev.domain.errors import Unavailable
from gpudev.domain.scaling import ScalingGroup


class ScalingUnavailable(Unavailable):
    default_code = "scaling_unavailable"


class Scaling(Protocol):
    async def list_groups(self) -> tuple[ScalingGroup, ...]:
        """Every group, all pages of it, or `ScalingUnavailable`: never a part."""
        ...
