"""A watch of one collection, the newest known version of each of its objects, and an index of the Services.

An object comes from the watch, and sooner from the answer to a call of ours; the newer version stays. An
object that is known to be deleted is not restored by an answer that arrives late.

A watch that fails continues from the last version that it received; if the API has forgotten that version,
everything is listed again. Meanwhile the cache keeps what was seen last: a collection that cannot be read is
not an empty one.
"""

from __future__ import annotations

import asyncio
import random
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

import structlog

from gpudev.adapters.kubernetes.api_objects import Json, Kind, name_of, uid_of
from gpudev.adapters.kubernetes.client import Expired, KubernetesClient
from gpudev.adapters.kubernetes.facts import PodFacts, ServiceFacts
from gpudev.domain.errors import Unavailable
from gpudev.domain.names import ReservationId
from gpudev.faults import FAULTS

Facts = TypeVar("Facts")

_REMEMBERED = 2000
_log = structlog.get_logger(__name__)

_FIRST_PAUSE = 0.05
_LONGEST_PAUSE = 2.0


@dataclass(frozen=True, slots=True)
class _Entry(Generic[Facts]):
    uid: str
    version: int
    facts: Facts


class ObjectCache(Generic[Facts]):
    """Told by `watch.Watch`; tells `on_change` the facts before and after, None for what is not there."""

    def __init__(
        self, read: Callable[[Json], Facts], on_change: Callable[[Facts | None, Facts | None], None]
    ) -> None:
        self._read = read
        self._on_change = on_change
        self._entries: dict[str, _Entry[Facts]] = {}
        self._gone: dict[str, None] = {}
        self.version = 0
        """Everything that happened until then is known here."""

    def __iter__(self) -> Iterator[Facts]:
        return (entry.facts for entry in self._entries.values())

    def find(self, name: str, namespace: str = "") -> Facts | None:
        entry = self._entries.get(f"{namespace}/{name}")
        return entry.facts if entry else None

    def replace_all(self, items: list[Json], version: str) -> None:
        for item in items:
            with FAULTS.containing("watch", _key_of(item)):
                self.put(item)
        present = {_key_of(item) for item in items}
        listed_at = int(version)
        # What we made after the list was read is not in it, and not gone.
        gone = [
            key for key, kept in self._entries.items() if key not in present and kept.version <= listed_at
        ]
        self.version = max(self.version, listed_at)
        for key in gone:
            self._remove(key)

    def reach(self, version: str) -> None:
        """The watch has come so far."""
        self.version = max(self.version, int(version))

    def put(self, item: Json) -> None:
        key, uid, version = _key_of(item), uid_of(item), int(item["metadata"]["resourceVersion"])
        known = self._entries.get(key)
        if uid in self._gone or (known and known.version >= version):
            return
        facts = self._read(item)
        self._entries[key] = _Entry(uid, version, facts)
        self._on_change(known.facts if known else None, facts)

    def drop(self, item: Json) -> None:
        self.forget(name_of(item), uid_of(item), item["metadata"].get("namespace", ""))

    def forget(self, name: str, uid: str, namespace: str = "") -> None:
        """This very object is gone; another of its name stays."""
        self._remember(uid)
        key = f"{namespace}/{name}"
        known = self._entries.get(key)
        if known and known.uid == uid:
            self._remove(key)

    def _remove(self, key: str) -> None:
        entry = self._entries.pop(key)
        self._remember(entry.uid)
        self._on_change(entry.facts, None)

    def _remember(self, uid: str) -> None:
        self._gone[uid] = None
        if len(self._gone) > _REMEMBERED:
            del self._gone[next(iter(self._gone))]


def _key_of(item: Json) -> str:
    return f"{item['metadata'].get('namespace', '')}/{name_of(item)}"


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


class ServiceIndex:
    """The Services by owner, by pod and by use: no lookup goes through all of them."""

    def __init__(self) -> None:
        self._of_owner: defaultdict[ReservationId, dict[str, ServiceFacts]] = defaultdict(dict)
        self._port_slots: dict[str, ServiceFacts] = {}
        self._pods: dict[str, PodFacts] = {}
        self._free: dict[str, ServiceFacts] = {}

    def list_of(self, owner: ReservationId) -> tuple[ServiceFacts, ...]:
        return tuple(self._of_owner[owner].values()) if owner in self._of_owner else ()

    def list_free_port_slots(self) -> tuple[ServiceFacts, ...]:
        return tuple(self._free.values())

    def find_pod(self, name: str) -> PodFacts | None:
        """Whom the Service of this name leads to."""
        return self._pods.get(name)

    def change(self, before: ServiceFacts | None, after: ServiceFacts | None) -> None:
        if before is not None:
            self._take_out(before)
        if after is not None:
            self._put_in(after)

    def lead_to(self, pod: PodFacts) -> None:
        self._pods[pod.member.service] = pod
        self._free.pop(pod.member.service, None)

    def end_leading_to(self, pod: PodFacts) -> None:
        self._pods.pop(pod.member.service, None)
        self._note_slot(pod.member.service)

    def _put_in(self, service: ServiceFacts) -> None:
        if service.owner is not None:
            self._of_owner[service.owner][service.name] = service
        if service.is_port_slot and not service.is_leaving:
            self._port_slots[service.name] = service
            self._note_slot(service.name)

    def _take_out(self, service: ServiceFacts) -> None:
        self._port_slots.pop(service.name, None)
        self._free.pop(service.name, None)
        if service.owner is not None:
            self._of_owner[service.owner].pop(service.name, None)
            if not self._of_owner[service.owner]:
                del self._of_owner[service.owner]

    def _note_slot(self, name: str) -> None:
        slot = self._port_slots.get(name)
        if slot is not None and name not in self._pods:
            self._free[name] = slot
