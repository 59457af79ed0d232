"""The GPU types that can be asked for, their machines, and what share of a machine a request gets.

This is the one table: the database, the API, the CLI and the deployment derive from it. An operator adds
or retires types by configuration, which makes another `Catalogue`; nothing else in the system holds a
list of types. Amounts of CPU and memory are written as Kubernetes writes them: `10m`, `1.5`, `64Mi`, `2G`.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from types import MappingProxyType
from typing import Literal

from gpudev.domain.errors import Invalid

Architecture = Literal["amd64", "arm64"]

Amount = int | Fraction
"""vCPUs or GiB: whole ones, or the exact part that a configured type gives."""

GPU_RESOURCE = "nvidia.com/gpu"
GPU_COUNTS = (1, 2, 4, 8)
MAX_GANG_NODES = 4
CPU_SLOTS_PER_NODE = 3


@dataclass(frozen=True, slots=True)
class Share:
    """What a request gets of a node, in vCPUs and GiB; whole ones unless the type gives its own share."""

    cpu_request: Amount
    cpu_limit: Amount
    memory_request_gib: Amount
    memory_limit_gib: Amount

    def times(self, slots: int) -> Share:
        return Share(
            self.cpu_request * slots,
            self.cpu_limit * slots,
            self.memory_request_gib * slots,
            self.memory_limit_gib * slots,
        )


@dataclass(frozen=True, slots=True)
class GpuType:
    """One kind of machine. `gpus_per_node` is 0 for the CPU types, whose nodes are shared by slots."""

    name: str
    instance_type: str
    gpus_per_node: int
    vcpus: int
    memory_gib: int
    gpu_memory_gb: int = 0
    max_nodes: int = 1
    efa_interfaces: int = 0
    architecture: Architecture = "amd64"
    share_per_slot: Share | None = None
    """What goes with one GPU, or with one slot of a CPU node; None: its part of the node."""
    resource: str = GPU_RESOURCE
    """What nodes call these GPUs when they count them; a MIG slice has a name of its own."""
    image: str = ""
    """The image of its dev servers where it is not that of the others."""

    @property
    def is_cpu_only(self) -> bool:
        return self.gpus_per_node == 0

    @property
    def slots_per_node(self) -> int:
        """How many units a node has to give: GPUs, or user slots where there are none."""
        return self.gpus_per_node or CPU_SLOTS_PER_NODE

    def slots_for(self, gpu_count: int) -> int:
        """How many units of a node a request takes; a CPU reservation takes one slot."""
        return gpu_count or 1

    @property
    def counts_on_one_node(self) -> tuple[int, ...]:
        if self.is_cpu_only:
            return (0,)
        return tuple(count for count in GPU_COUNTS if count <= self.gpus_per_node)

    def share_of(self, gpu_count: int) -> Share:
        """The part of one node's CPU and memory that goes with so many of its GPUs."""
        slots = self.slots_for(gpu_count)
        if self.share_per_slot is not None:
            return self.share_per_slot.times(slots)
        part = Fraction(slots, self.slots_per_node)
        return Share(
            cpu_request=_at_least_one(part * self.vcpus * Fraction(9, 10)),
            cpu_limit=_at_least_one(min(Fraction(self.vcpus), part * self.vcpus * Fraction(3, 2))),
            memory_request_gib=_at_least_one(part * self.memory_gib * Fraction(9, 10)),
            memory_limit_gib=_at_least_one(part * self.memory_gib),
        )

    def check_count(self, gpu_count: int) -> int:
        """Refuse a count that no single node of this type can give."""
        if gpu_count in self.counts_on_one_node:
            return gpu_count
        choices = self.counts_on_one_node
        if self.is_cpu_only:
            raise Invalid("type_has_no_gpus", gpu_type=self.name, code="bad_gpu_count")
        if gpu_count > self.gpus_per_node:
            raise Invalid(
                "more_gpus_than_a_node_has",
                gpu_count=gpu_count,
                gpu_type=self.name,
                gpus_per_node=self.gpus_per_node,
                choices=choices,
                code="too_many_gpus",
            )
        raise Invalid(
            "gpu_count_not_offered",
            gpu_type=self.name,
            gpu_count=gpu_count,
            choices=choices,
            code="bad_gpu_count",
        )


@dataclass(frozen=True)
class Catalogue:
    """The types on offer, found by name in any letter case."""

    types: tuple[GpuType, ...]

    @cached_property
    def by_name(self) -> Mapping[str, GpuType]:
        return MappingProxyType({gpu_type.name: gpu_type for gpu_type in self.types})

    def find(self, name: str) -> GpuType | None:
        return self.by_name.get(name.lower())

    def get(self, name: str) -> GpuType:
        found = self.find(name)
        if found is not None:
            return found
        near = difflib.get_close_matches(name.lower(), self.by_name, n=3, cutoff=0.4)
        raise Invalid(
            "unknown_gpu_type", name=name, choices=near or list(self.by_name), code="unknown_gpu_type"
        )

    def only(self, names: Iterable[str]) -> Catalogue:
        """The same catalogue with just these types on offer; an unknown name is refused."""
        wanted = {self.get(name).name for name in names}
        return Catalogue(tuple(gpu_type for gpu_type in self.types if gpu_type.name in wanted))


def _at_least_one(amount: Fraction) -> int:
    return max(1, int(amount))


DEFAULT_CATALOGUE = Catalogue(
    (
        GpuType("t4", "g4dn.12xlarge", 4, 48, 192, 16),
        GpuType("t4-small", "g4dn.2xlarge", 1, 8, 32, 16),
        GpuType("l4", "g6.12xlarge", 4, 48, 192, 24, efa_interfaces=1),
        GpuType("a10g", "g5.12xlarge", 4, 48, 192, 24, efa_interfaces=1),
        GpuType("a100", "p4d.24xlarge", 8, 96, 1152, 40, MAX_GANG_NODES, 4),
        GpuType("h100", "p5.48xlarge", 8, 192, 2048, 80, MAX_GANG_NODES, 32),
        GpuType("h200", "p5e.48xlarge", 8, 192, 2048, 141, MAX_GANG_NODES, 32),
        GpuType("b200", "p6-b200.48xlarge", 8, 192, 2048, 180, MAX_GANG_NODES, 8),
        GpuType("cpu-x86", "c7i.8xlarge", 0, 32, 64),
        GpuType("cpu-arm", "c7g.8xlarge", 0, 32, 64, architecture="arm64"),
    )
)


_QUANTITY = re.compile(r"([0-9]+(?:\.[0-9]+)?)(m|[kMGTP]|[KMGTP]i)?")
_GIB = 1024**3
_FACTORS = {
    "": Fraction(1),
    "m": Fraction(1, 1000),
    **{letter: Fraction(1000**power) for power, letter in enumerate("kMGTP", start=1)},
    **{f"{letter}i": Fraction(1024**power) for power, letter in enumerate("KMGTP", start=1)},
}


def parse_quantity(text: str) -> Fraction:
    """The exact number that a quantity means."""
    found = _QUANTITY.fullmatch(text)
    if found is None:
        raise Invalid("bad_quantity", text=text, code="bad_quantity")
    number, suffix = found.groups(default="")
    return Fraction(number) * _FACTORS[suffix]


def parse_gibibytes(text: str) -> Fraction:
    return parse_quantity(text) / _GIB
