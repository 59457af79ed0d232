"""One GPU of this machine, real or simulated, as it is given to a dev server."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LocalGpu:
    visible_name: str
    """What `CUDA_VISIBLE_DEVICES` says: a UUID, or a name that can never be a real GPU's."""
    device_paths: tuple[str, ...] = ()
    is_simulated: bool = True
