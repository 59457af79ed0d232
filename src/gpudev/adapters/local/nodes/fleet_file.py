"""A fleet file: simulated nodes, written down in TOML.

[[nodes]]
type = "a100"      # a type of the catalogue
count = 2          # how many such nodes; 1 if left out
gpus = 8           # GPUs of each; as the catalogue says if left out
labels = { nsight = "true" }   # labels of each; none if left out
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gpudev.domain.catalogue import Catalogue, GpuType
from gpudev.domain.errors import Invalid

MAX_NODES = 100
MAX_GPUS_PER_NODE = 64
_KEYS = ("type", "count", "gpus", "labels")


@dataclass(frozen=True, slots=True)
class NodeGroup:
    """So many equal nodes."""

    gpu_type: str
    nodes: int
    gpus: int
    labels: Mapping[str, str] = field(default_factory=dict)


def read_fleet_file(path: Path, base: Catalogue) -> tuple[NodeGroup, ...]:
    """What the file says, or `Invalid` with the file, the place in it and what may stand there."""
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise _bad(path, f"is not TOML: {error}.", "Write it as shown in docs/howto/fleet.md.") from error
    except OSError as error:
        raise _bad(path, f"cannot be read: {error.strerror}.", "Check the path and its mode.") from error
    tables = content.get("nodes")
    if not isinstance(tables, list) or not tables or set(content) != {"nodes"}:
        raise _bad(path, "must hold [[nodes]] tables and nothing else.", 'Start with: [[nodes]] type = "t4"')
    places = (_Place(path, f"[[nodes]] number {number}") for number in range(1, len(tables) + 1))
    groups = tuple(_read_group(place, table, base) for place, table in zip(places, tables, strict=True))
    _check_equal_nodes(path, groups)
    return groups


@dataclass(frozen=True, slots=True)
class _Place:
    path: Path
    words: str

    def refuse(self, what: str, hint: str) -> Invalid:
        return _bad(self.path, f"{self.words}: {what}", hint)


def _read_group(place: _Place, table: object, base: Catalogue) -> NodeGroup:
    if not isinstance(table, Mapping):
        raise place.refuse("it is not a table.", 'Write: [[nodes]] type = "t4"')
    unknown = sorted(set(table) - set(_KEYS))
    if unknown:
        raise place.refuse(f'"{unknown[0]}" is not known.', f"The keys are {_in_words(_KEYS)}.")
    gpu_type = _read_type(place, table.get("type"), base)
    return NodeGroup(
        gpu_type.name,
        nodes=_read_number(place, table, "count", default=1, highest=MAX_NODES),
        gpus=_read_gpus(place, table, gpu_type),
        labels=_read_labels(place, table.get("labels", {})),
    )


def _read_labels(place: _Place, value: object) -> dict[str, str]:
    if not isinstance(value, dict) or not all(isinstance(one, str) for one in value.values()):
        raise place.refuse(f"labels = {value!r} are not labels.", 'Use for example { nsight = "true" }.')
    return dict(value)


def _read_type(place: _Place, value: Any, base: Catalogue) -> GpuType:
    found = base.find(value) if isinstance(value, str) else None
    if found is None:
        raise place.refuse(
            f"type = {value!r} is not a GPU type.", f"The types are {_in_words(base.by_name)}."
        )
    return found


def _read_gpus(place: _Place, table: Mapping[str, Any], gpu_type: GpuType) -> int:
    if not gpu_type.is_cpu_only:
        return _read_number(place, table, "gpus", default=gpu_type.gpus_per_node, highest=MAX_GPUS_PER_NODE)
    if "gpus" in table:
        raise place.refuse(f"{gpu_type.name} nodes have no GPUs.", "Leave gpus out.")
    return 0


def _read_number(place: _Place, table: Mapping[str, Any], key: str, *, default: int, highest: int) -> int:
    value = table.get(key, default)
    if type(value) is not int or not 1 <= value <= highest:
        raise place.refuse(f"{key} = {value!r} is not a number of them.", f"Use 1 to {highest}.")
    return value


def _check_equal_nodes(path: Path, groups: Iterable[NodeGroup]) -> None:
    """A type has one size: shares of CPU and memory, and what is refused as too big, follow from it."""
    sizes: dict[str, int] = {}
    for group in groups:
        if sizes.setdefault(group.gpu_type, group.gpus) != group.gpus:
            raise _bad(
                path,
                f"gives {group.gpu_type} nodes of {sizes[group.gpu_type]} and of {group.gpus} GPUs.",
                "All nodes of a type have the same number; use another type for the others.",
            )


def _bad(path: Path, what: str, hint: str) -> Invalid:
    return Invalid(f"The fleet file {path} {what}", hint=hint, code="bad_fleet_file")


def _in_words(choices: Iterable[str]) -> str:
    return ", ".join(choices)
