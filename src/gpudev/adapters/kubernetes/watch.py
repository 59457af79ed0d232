"""Following one collection: list it, then hear of every change, for as long as we run.

Whatever goes wrong is gone through again from the last version heard of; where the API has forgotten that
version, everything is listed anew. What is kept meanwhile is what was seen last: a collection that cannot
be read is not an empty one.
"""

from __future__ import annotations

import asyncio
import random
from typing import Protocol

import structlog

from gpudev.adapters.kubernetes.client import Expired, Kind, KubernetesClient
from gpudev.adapters.kubernetes.labels import Json
from gpudev.domain.errors import Unavailable
from gpudev.faults import FAULTS

_log = structlog.get_logger(__name__)

_FIRST_PAUSE = 0.05
_LONGEST_PAUSE = 2.0


class Sink(Protocol):
    """Who is told."""

    def replace_all(self, items: list[Json], version: str) -> None:
        """The whole collection at that version; what is older and not in it is gone."""
        ...

    def reach(self, version: str) -> None:
        """Everything until that version has been told."""
        ...

    def put(self, item: Json) -> None: ...

    def drop(self, item: Json) -> None: ...


class Watch:
    def __init__(self, client: KubernetesClient, kind: Kind, sink: Sink) -> None:
        self._client = client
        self._kind = kind
        self._sink = sink
        self._version = ""
        self._failures = 0

    async def fill(self) -> None:
        """The first look at everything."""
        items, version = await self._client.list_all(self._kind)
        self._sink.replace_all(items, version)
        self._version = version

    async def run(self) -> None:
        """For ever. If an error of ours ends it, the next run begins with a look at everything."""
        try:
            await self._run()
        finally:
            self._version = ""

    async def _run(self) -> None:
        while True:
            try:
                if not self._version:
                    await self.fill()
                await self._follow()
            except Expired:
                self._version = ""
            except Unavailable as error:
                _log.warning("watch_interrupted", kind=self._kind.plural, error=error.message)
            await self._pause()

    async def _follow(self) -> None:
        async for change, item in self._client.watch(self._kind, self._version):
            self._failures = 0
            self._version = item["metadata"]["resourceVersion"]
            self._sink.reach(self._version)
            with FAULTS.containing("watch", str(item["metadata"].get("name", ""))):
                # One object that cannot be read is not heard of any further; the others are.
                self._take(change, item)

    def _take(self, change: str, item: Json) -> None:
        if change == "DELETED":
            self._sink.drop(item)
        elif change != "BOOKMARK":
            self._sink.put(item)

    async def _pause(self) -> None:
        """None to speak of after an ordinary end; longer each time that nothing was heard in between."""
        ceiling = min(_LONGEST_PAUSE, _FIRST_PAUSE * 2.0**self._failures)
        self._failures += 1
        await asyncio.sleep(ceiling * random.uniform(0.5, 1.0))  # noqa: S311 - spreads retries
