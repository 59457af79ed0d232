"""`python -m tests.support.local_owner STATE_DIR ISOLATION PUBLIC_KEY`: owns a cluster until it is killed."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import structlog

from gpudev.adapters.local.cluster import LocalCluster
from gpudev.adapters.local.cluster_config import LocalClusterConfig
from gpudev.adapters.local.fleet import load_fleet
from gpudev.adapters.local.sandbox.isolation import Isolation
from tests.support.local_cluster import Key, create_ready, make_spec


async def main() -> None:
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    state_dir, isolation, public_key = sys.argv[1:]
    config = LocalClusterConfig(Path(state_dir), load_fleet("test"), Isolation(isolation))
    async with LocalCluster(config) as cluster:
        spec = make_spec(Key(Path(), public_key))
        await create_ready(cluster, spec)
        sys.stdout.write(f"{spec.reservation_id}\n")
        sys.stdout.flush()
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main())
