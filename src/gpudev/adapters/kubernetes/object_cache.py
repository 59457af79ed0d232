"""The newest known version of each object of one collection.

An object comes from the watch, and sooner from the answer to a call of ours; the newer version stays. An
object that is known to be deleted is not restored by an answer that arrives late.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

from gpudev.adapters.kubernetes.labels import Json, name_of, uid_of
from gpudev.faults import FAULTS

Facts = TypeVar("Facts")

_REMEMBERED = 2000


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
