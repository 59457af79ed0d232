"""An order to start one dev server, as it is passed to the process that carries it out."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from gpudev.adapters.local.cgroups import Cgroups
from gpudev.adapters.local.sandbox.isolation import Isolation

SERVING = b"serving\n"
"""The one thing that is said on the status pipe; its end without that means that the start failed."""

HELLO = b"ready"
"""What a zygote says first, once it can take orders."""


@dataclass(frozen=True, slots=True)
class StartOrder:
    """Which server to start and how; everything else, secrets above all, is in its record."""

    state_dir: Path
    key: str
    isolation: Isolation
    read_only_paths: tuple[str, ...] = ()
    bubblewrap: str = ""
    """The program that makes the sandbox; empty: the first that is installed."""
    cgroups: Cgroups | None = None
    """Where the cgroup of the server goes, if it can have one."""

    def to_json(self) -> str:
        return json.dumps(
            {
                "state_dir": str(self.state_dir),
                "key": self.key,
                "isolation": self.isolation,
                "read_only_paths": self.read_only_paths,
                "bubblewrap": self.bubblewrap,
                "cgroups": [str(self.cgroups.root), self.cgroups.controllers] if self.cgroups else None,
            }
        )

    @classmethod
    def from_json(cls, text: str) -> StartOrder:
        value = json.loads(text)
        return cls(
            state_dir=Path(value["state_dir"]),
            key=value["key"],
            isolation=Isolation(value["isolation"]),
            read_only_paths=tuple(value["read_only_paths"]),
            bubblewrap=value["bubblewrap"],
            cgroups=Cgroups(Path(cgroups[0]), tuple(cgroups[1])) if (cgroups := value["cgroups"]) else None,
        )


@dataclass(frozen=True, slots=True)
class OrderDescriptors:
    """What goes with an order: the socket to listen on, and the pipe on which to say that it serves."""

    listener: int
    status: int
