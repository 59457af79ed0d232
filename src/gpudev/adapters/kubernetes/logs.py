"""The log of a dev server's container."""

from __future__ import annotations

from collections.abc import AsyncIterator

from gpudev.adapters.kubernetes.client import Refused, connect
from gpudev.adapters.kubernetes.kinds import OwnKinds
from gpudev.adapters.kubernetes.labels import owner_of
from gpudev.domain.errors import NotFound
from gpudev.domain.names import ReservationId, server_name
from gpudev.ports.logs import LogQuery


class KubernetesLogs:
    """Each read has a connection of its own: there are few, and some of them last for hours."""

    def __init__(self, kubeconfig: str, namespace: str) -> None:
        self._kubeconfig = kubeconfig
        self._pods = OwnKinds(namespace).pods

    async def read(self, reservation_id: ReservationId, query: LogQuery) -> AsyncIterator[bytes]:
        name = server_name(reservation_id)
        async with connect(self._kubeconfig) as client:
            pod = await client.find(self._pods, name)
            if pod is None or owner_of(pod) != reservation_id:
                raise NotFound("log_without_server", id=reservation_id)
            try:
                async for chunk in client.read_log(self._pods, name, _parameters_of(query)):
                    yield chunk
            except Refused as refusal:
                raise NotFound("log_not_there_yet", why=refusal.why) from refusal


def _parameters_of(query: LogQuery) -> dict[str, str]:
    tail = {"tailLines": str(query.tail)} if query.tail is not None else {}
    return {**tail, "follow": "true"} if query.follow else tail
