"""A watch goes on after an object that cannot be read."""

from __future__ import annotations

from typing import Any

from gpudev.adapters.kubernetes.object_cache import ObjectCache


def read(item: dict[str, Any]) -> str:
    if item.get("spec") == "odd":
        raise KeyError("spec")
    return str(item["metadata"]["name"])


def make(name: str, version: int, spec: str = "") -> dict[str, Any]:
    metadata = {"name": name, "namespace": "n", "uid": name, "resourceVersion": str(version)}
    return {"metadata": metadata, "spec": spec}


def test_one_object_that_cannot_be_read_does_not_hide_the_others() -> None:
    shelf: ObjectCache[str] = ObjectCache(read, lambda _before, _after: None)
    shelf.replace_all([make("a", 1), make("b", 2, "odd"), make("c", 3)], "3")
    assert sorted(shelf) == ["a", "c"]
    shelf.replace_all([make("a", 1), make("b", 4), make("c", 3)], "4")
    assert sorted(shelf) == ["a", "b", "c"]
