"""The operator's own GPU types, from a TOML file.

offered = ["a100", "a100-slice"]     # left out: all of the catalogue and of this file

[[types]]
name = "a100-slice"                  # like one of the catalogue, or new
instance_type = "p4d.24xlarge"
gpus_per_node = 56
vcpus = 96
memory_gib = 1152
resource = "nvidia.com/mig-1g.5gb"   # what the nodes call it
share = { cpu = "1", memory = "16Gi" }   # a GPU; cpu_limit and memory_limit may be given as well
"""

from __future__ import annotations

import tomllib
from dataclasses import replace
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from gpudev.domain.catalogue import (
    GPU_RESOURCE,
    Architecture,
    Catalogue,
    GpuType,
    Share,
    parse_gibibytes,
    parse_quantity,
)
from gpudev.domain.errors import Invalid

_STRICT = ConfigDict(extra="forbid", frozen=True)


class _ShareEntry(BaseModel):
    model_config = _STRICT

    cpu: str
    memory: str
    cpu_limit: str = ""
    memory_limit: str = ""

    def read(self) -> Share:
        return Share(
            cpu_request=parse_quantity(self.cpu),
            cpu_limit=parse_quantity(self.cpu_limit or self.cpu),
            memory_request_gib=parse_gibibytes(self.memory),
            memory_limit_gib=parse_gibibytes(self.memory_limit or self.memory),
        )


class _TypeEntry(BaseModel):
    model_config = _STRICT

    name: str = Field(pattern=r"^[a-z0-9]([a-z0-9.-]{0,38}[a-z0-9])?$")
    instance_type: str = ""
    gpus_per_node: int = Field(ge=0, le=128)
    vcpus: int = Field(ge=1)
    memory_gib: int = Field(ge=1)
    gpu_memory_gb: int = Field(0, ge=0)
    max_nodes: int = Field(1, ge=1)
    efa_interfaces: int = Field(0, ge=0)
    architecture: Architecture = "amd64"
    resource: str = GPU_RESOURCE
    image: str = ""
    share: _ShareEntry | None = None

    def read(self) -> GpuType:
        plain = self.model_dump(exclude={"share"})
        gpu_type = GpuType(**plain)
        return replace(gpu_type, share_per_slot=self.share.read()) if self.share else gpu_type


class _File(BaseModel):
    model_config = _STRICT

    types: tuple[_TypeEntry, ...] = ()
    offered: tuple[str, ...] = ()


def read_catalogue(path: Path | None, base: Catalogue) -> Catalogue:
    """What is on offer; `Invalid` with the file and what is wrong in it."""
    if path is None:
        return base
    try:
        content = _File.model_validate(tomllib.loads(path.read_text(encoding="utf-8")))
        own = tuple(entry.read() for entry in content.types)
    except (OSError, ValidationError, tomllib.TOMLDecodeError, UnicodeDecodeError, Invalid) as error:
        raise Invalid(
            "bad_gpu_types_file", path=str(path), words=str(error), code="bad_gpu_types_file"
        ) from error
    names = {gpu_type.name for gpu_type in own}
    all_types = Catalogue((*(kept for kept in base.types if kept.name not in names), *own))
    return all_types.only(content.offered) if content.offered else all_types
