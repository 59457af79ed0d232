"""Listings of claims and snapshots, for whoever looks now and then."""

from __future__ import annotations

from gpudev.adapters.kubernetes.client import connect
from gpudev.adapters.kubernetes.disks.config import ClaimConfig
from gpudev.adapters.kubernetes.disks.volumes import KubernetesVolumes
from gpudev.domain.volume import ObservedSnapshot, ObservedVolume


class ClaimListings:
    """Each look has a connection of its own."""

    def __init__(self, kubeconfig: str, config: ClaimConfig) -> None:
        self._kubeconfig = kubeconfig
        self._config = config

    async def list_volumes(self) -> tuple[ObservedVolume, ...]:
        async with connect(self._kubeconfig) as client:
            return await KubernetesVolumes(client, self._config).list_volumes()

    async def list_snapshots(self) -> tuple[ObservedSnapshot, ...]:
        async with connect(self._kubeconfig) as client:
            return await KubernetesVolumes(client, self._config).list_snapshots()
