"""`gpu-dev admin simulate`: weeks from a file, from the database or by chance, by the rules of the queue."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from gpudev.app.simulation.findings import Findings
from gpudev.app.simulation.report import as_data, draw_waits, format_findings
from gpudev.app.simulation.simulate import Scene, simulate
from gpudev.app.simulation.workload import Trace, Workload, generate_trace, read_trace, write_trace
from gpudev.bootstrap.foundation import SystemClock, make_policy, offered_catalogue, open_stores
from gpudev.bootstrap.policy_file import read_policy
from gpudev.domain.policy import with_default_quota
from gpudev.settings import Settings

__all__ = ["Choice", "as_data", "draw_waits", "format_findings", "run_simulation"]


@dataclass(frozen=True, slots=True)
class Choice:
    """What the command line chose."""

    nodes: int
    gpus_per_node: int
    gpu_type: str
    weeks: int
    seed: int
    load: float
    trace_file: Path | None = None
    is_recorded: bool = False
    policy_file: Path | None = None
    written_to: Path | None = None
    """Where the trace is kept, to be replayed again."""


def run_simulation(choice: Choice) -> Sequence[Findings]:
    settings = Settings()
    trace = _read(choice, settings)
    if choice.written_to is not None:
        write_trace(choice.written_to, trace)
    scene = Scene(
        nodes=choice.nodes,
        gpus_per_node=choice.gpus_per_node,
        gpu_type=choice.gpu_type,
        policy=make_policy(settings),
        sharing=with_default_quota(read_policy(choice.policy_file, offered_catalogue(settings))),
    )
    return simulate(scene, trace)


def _read(choice: Choice, settings: Settings) -> Trace:
    if choice.trace_file is not None:
        return read_trace(choice.trace_file)
    if choice.is_recorded:
        return asyncio.run(_read_recorded(choice, settings))
    return generate_trace(
        Workload(
            nodes=choice.nodes,
            gpus_per_node=choice.gpus_per_node,
            weeks=choice.weeks,
            seed=choice.seed,
            load=choice.load,
        )
    )


async def _read_recorded(choice: Choice, settings: Settings) -> Trace:
    since = SystemClock().now() - timedelta(weeks=choice.weeks)
    async with open_stores(settings) as stores:
        return await stores.admissions.list_submissions(choice.gpu_type, since)
