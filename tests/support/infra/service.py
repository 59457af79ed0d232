"""A Service of Kubernetes, as one address here: connections go to whichever server it leads to now."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from tests.support.relay import running_relay


@dataclass(slots=True)
class Service:
    target: int
    """The port of the server that it leads to; connections that are open stay where they are."""
    port: int = 0


@contextmanager
def running_service(target: int) -> Iterator[Service]:
    service = Service(target)
    with running_relay(lambda: service.target) as service.port:
        yield service
