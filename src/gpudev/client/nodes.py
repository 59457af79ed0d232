"""What admins ask of the API about nodes, one method each."""

from __future__ import annotations

from typing import Protocol, TypeVar
from urllib.parse import quote

from gpudev.wire.nodes import DrainRequest, NodeChanged, NodeList

T = TypeVar("T")


class Caller(Protocol):
    """The part of a session that is needed here."""

    def call(self, kind: type[T], method: str, path: str) -> T: ...

    def send(self, kind: type[T], method: str, path: str, body: object = None) -> T: ...


class Nodes:
    def __init__(self, session: Caller) -> None:
        self._session = session

    def list(self) -> NodeList:
        """Every node: whether it takes reservations, and which are there."""
        return self._session.call(NodeList, "GET", "/v1/admin/nodes")

    def drain(self, name: str, reason: str = "") -> NodeChanged:
        """Have nothing new placed there, and the owners of what runs there told."""
        return self._session.send(NodeChanged, "POST", f"{_path(name)}/drain", DrainRequest(reason=reason))

    def undrain(self, name: str) -> NodeChanged:
        """Put it back into service."""
        return self._session.call(NodeChanged, "POST", f"{_path(name)}/undrain")


def _path(name: str) -> str:
    return f"/v1/admin/nodes/{quote(name, safe='')}"
