"""The nodes that this machine plays: its own GPUs, or simulated ones from a preset or a fleet file.

A simulated GPU is a number to be counted, given and taken back, so that the whole product can be used
and tested on a laptop; a dev server on it is real in everything but the GPU.

A fleet file: simulated nodes, written down in TOML.

[[nodes]]
type = "a100"      # a type of the catalogue
count = 2          # how many such nodes; 1 if left out
gpus = 8           # GPUs of each; as the catalogue says if left out
labels = { nsight = "true" }   # labels of each; none if left out
"""

from __future__ import annotations

import math
import os
import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from gpudev.adapters.local.gpus import DetectedGpu, LocalGpu, list_gpus, model_words
from gpudev.domain.catalogue import CPU_SLOTS_PER_NODE, DEFAULT_CATALOGUE, Catalogue, GpuType
from gpudev.domain.errors import Invalid
from gpudev.domain.names import NodeName

MAX_NODES = 100
MAX_GPUS_PER_NODE = 64
_KEYS = ("type", "count", "gpus", "labels")
_CODE = "bad_fleet_file"
DETECT = "detect"
_GIB = 1024**3
_SHARED_DEVICES = ("/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools", "/dev/nvidia-modeset")


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


PRESETS = {"test": (NodeGroup("t4", nodes=2, gpus=4),), "prod": (NodeGroup("a100", nodes=2, gpus=8),)}


@dataclass(frozen=True, slots=True)
class LocalNode:
    """One node. A node without GPUs is a CPU node, shared by user slots."""

    name: NodeName
    gpu_type: str
    gpus: tuple[LocalGpu, ...]
    labels: Mapping[str, str] = field(default_factory=dict)

    @property
    def slots(self) -> int:
        return len(self.gpus) or CPU_SLOTS_PER_NODE

    @property
    def is_simulated(self) -> bool:
        return all(gpu.is_simulated for gpu in self.gpus)


@dataclass(frozen=True, slots=True)
class Fleet:
    nodes: tuple[LocalNode, ...]
    detected_types: tuple[GpuType, ...] = ()
    """The types of real GPUs, with the CPUs and the memory that this machine really has."""

    def find_node(self, name: NodeName) -> LocalNode | None:
        return next((node for node in self.nodes if node.name == name), None)

    def find_gpu(self, visible_name: str) -> LocalGpu | None:
        gpus = (gpu for node in self.nodes for gpu in node.gpus)
        return next((gpu for gpu in gpus if gpu.visible_name == visible_name), None)

    def catalogue(self, base: Catalogue = DEFAULT_CATALOGUE) -> Catalogue:
        """Just the types of this fleet, sized as its nodes are, so that what cannot fit is refused."""
        detected = {gpu_type.name: gpu_type for gpu_type in self.detected_types}
        sizes = {node.gpu_type: len(node.gpus) for node in self.nodes}
        types = [detected.get(name) or self._measure(base.get(name), gpus) for name, gpus in sizes.items()]
        return Catalogue(tuple(types))

    def _measure(self, gpu_type: GpuType, gpus: int) -> GpuType:
        nodes = sum(node.gpu_type == gpu_type.name for node in self.nodes)
        return replace(gpu_type, gpus_per_node=gpus, max_nodes=min(gpu_type.max_nodes, nodes))


def default_fleet_choice() -> str:
    """The machine's own GPUs where it has some, else the small simulated fleet."""
    return DETECT if list_gpus() else "test"


def load_fleet(choice: str, base: Catalogue = DEFAULT_CATALOGUE) -> Fleet:
    """The fleet of a preset, of this machine (`detect`) or of a TOML file."""
    if choice == DETECT:
        return detect_fleet(list_gpus(), base)
    if choice in PRESETS:
        return simulate_fleet(PRESETS[choice])
    path = Path(choice).expanduser()
    if not path.is_file():
        raise Invalid("fleet_unknown", code="unknown_fleet", choice=choice, presets=[*PRESETS, DETECT])
    return simulate_fleet(read_fleet_file(path, base))


def simulate_fleet(groups: Sequence[NodeGroup]) -> Fleet:
    nodes: list[LocalNode] = []
    numbers = Counter[str]()
    for group in groups:
        for _ in range(group.nodes):
            name = f"{group.gpu_type}-{numbers[group.gpu_type]}"
            gpus = tuple(LocalGpu(f"simulated-{name}-{index}") for index in range(group.gpus))
            nodes.append(LocalNode(NodeName(name), group.gpu_type, gpus, group.labels))
            numbers[group.gpu_type] += 1
    return Fleet(tuple(nodes))


def detect_fleet(gpus: Sequence[DetectedGpu], base: Catalogue = DEFAULT_CATALOGUE) -> Fleet:
    """One node for each type of real GPU: a machine seldom has more than one type."""
    if not gpus:
        raise Invalid("no_gpu_detected", code="no_gpus_detected")
    by_type: dict[str, list[DetectedGpu]] = {}
    for gpu in gpus:
        by_type.setdefault(type_name_of(gpu.product, base), []).append(gpu)
    nodes = [
        LocalNode(NodeName(f"{name}-0"), name, tuple(_as_local(gpu) for gpu in own))
        for name, own in by_type.items()
    ]
    types = [_measure_type(name, own, base) for name, own in by_type.items()]
    return Fleet(tuple(nodes), tuple(types))


def type_name_of(product: str, base: Catalogue = DEFAULT_CATALOGUE) -> str:
    """The catalogue's type of a product, or a name made from the product's where it has none."""
    words = model_words(product)
    known = next((word for word in words if base.find(word)), None)
    return known or "-".join(words) or "unknown-gpu"


def _as_local(gpu: DetectedGpu) -> LocalGpu:
    return LocalGpu(gpu.uuid, (gpu.device_path, *_SHARED_DEVICES), is_simulated=False)


def _measure_type(name: str, gpus: Sequence[DetectedGpu], base: Catalogue) -> GpuType:
    known = base.find(name)
    return GpuType(
        name=name,
        instance_type=known.instance_type if known else gpus[0].product,
        gpus_per_node=len(gpus),
        vcpus=len(os.sched_getaffinity(0)),
        memory_gib=os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // _GIB,
        gpu_memory_gb=math.ceil(gpus[0].memory_bytes / _GIB),
    )
