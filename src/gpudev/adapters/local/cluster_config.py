"""What one machine as the cluster is told when it is opened."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from gpudev.adapters.local.cgroups import Cgroups
from gpudev.adapters.local.fleet import Fleet
from gpudev.adapters.local.ports import DEFAULT_PORTS, PortRange
from gpudev.adapters.local.sandbox.isolation import Isolation
from gpudev.domain.errors import Invalid


@dataclass(frozen=True, slots=True)
class LocalClusterConfig:
    state_dir: Path
    """Records, homes and workspaces; nobody else may read it, and no dev server sees it."""
    fleet: Fleet
    isolation: Isolation
    read_only_paths: tuple[str, ...] = ()
    """Directories of the machine that sandboxed servers may read, besides the system's."""
    ports: PortRange = DEFAULT_PORTS
    bubblewrap: str = ""
    """The program that makes sandboxes; empty: the first that is installed."""
    cgroups: Cgroups | None = None
    """For limits of memory, CPU and processes, where a cgroup has been delegated."""


def check_config(config: LocalClusterConfig) -> LocalClusterConfig:
    state_dir = config.state_dir.resolve()
    for path in config.read_only_paths:
        if Path(path).resolve().is_relative_to(state_dir):
            raise Invalid("path_in_state_dir", code="bad_read_only_path", path=path, state_dir=str(state_dir))
    return replace(config, state_dir=state_dir)
