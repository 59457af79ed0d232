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
_CODE = "bad_fleet_file"


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
        raise Invalid("fleet_file_not_toml", code=_CODE, path=str(path), words=str(error)) from error
    except OSError as error:
        raise Invalid("fleet_file_unreadable", code=_CODE, path=str(path), words=error.strerror) from error
    tables = content.get("nodes")
    if not isinstance(tables, list) or not tables or set(content) != {"nodes"}:
        raise Invalid("fleet_file_without_nodes", code=_CODE, path=str(path))
    places = (_Place(str(path), number) for number in range(1, len(tables) + 1))
    groups = tuple(_read_group(place, table, base) for place, table in zip(places, tables, strict=True))
    _check_equal_nodes(path, groups)
    return groups


@dataclass(frozen=True, slots=True)
class _Place:
    """A table of the file, by its number from 1."""

    path: str
    number: int


def _read_group(place: _Place, table: object, base: Catalogue) -> NodeGroup:
    if not isinstance(table, Mapping):
        raise Invalid("fleet_table_not_table", code=_CODE, path=place.path, number=place.number)
    unknown = sorted(set(table) - set(_KEYS))
    if unknown:
        raise Invalid(
            "fleet_key_unknown", code=_CODE, path=place.path, number=place.number, key=unknown[0], keys=_KEYS
        )
    gpu_type = _read_type(place, table.get("type"), base)
    return NodeGroup(
        gpu_type.name,
        nodes=_read_number(place, table, "count", default=1, highest=MAX_NODES),
        gpus=_read_gpus(place, table, gpu_type),
        labels=_read_labels(place, table.get("labels", {})),
    )


def _read_labels(place: _Place, value: object) -> dict[str, str]:
    if not isinstance(value, dict) or not all(isinstance(one, str) for one in value.values()):
        raise Invalid(
            "fleet_labels_wrong", code=_CODE, path=place.path, number=place.number, value=repr(value)
        )
    return dict(value)


def _read_type(place: _Place, value: Any, base: Catalogue) -> GpuType:
    found = base.find(value) if isinstance(value, str) else None
    if found is None:
        raise Invalid(
            "fleet_type_unknown",
            code=_CODE,
            path=place.path,
            number=place.number,
            value=repr(value),
            types=list(base.by_name),
        )
    return found


def _read_gpus(place: _Place, table: Mapping[str, Any], gpu_type: GpuType) -> int:
    if not gpu_type.is_cpu_only:
        return _read_number(place, table, "gpus", default=gpu_type.gpus_per_node, highest=MAX_GPUS_PER_NODE)
    if "gpus" in table:
        raise Invalid(
            "fleet_gpus_on_cpu_node",
            code=_CODE,
            path=place.path,
            number=place.number,
            gpu_type=gpu_type.name,
        )
    return 0


def _read_number(place: _Place, table: Mapping[str, Any], key: str, *, default: int, highest: int) -> int:
    value = table.get(key, default)
    if type(value) is not int or not 1 <= value <= highest:
        raise Invalid(
            "fleet_number_wrong",
            code=_CODE,
            path=place.path,
            number=place.number,
            key=key,
            value=repr(value),
            highest=highest,
        )
    return value


def _check_equal_nodes(path: Path, groups: Iterable[NodeGroup]) -> None:
    """A type has one size: shares of CPU and memory, and what is refused as too big, follow from it."""
    sizes: dict[str, int] = {}
    for group in groups:
        if sizes.setdefault(group.gpu_type, group.gpus) != group.gpus:
            raise Invalid(
                "fleet_sizes_differ",
                code=_CODE,
                path=str(path),
                gpu_type=group.gpu_type,
                first=sizes[group.gpu_type],
                other=group.gpus,
            )
