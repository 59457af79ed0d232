"""How long a person waits for a dev server: from the request to the first byte of SSH.

In turns with the same dev server started by hand, so that the difference is what the product adds:
accounts, queue, placement, history, and the news of it.
"""

from __future__ import annotations

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from bench.by_hand import ColdStart, PreparedStart, make_public_key, prepared_starts, read_first_byte
from bench.claim_findings import QUICK, SETTLE_SECONDS, Claim, Effort, Findings, introduce, report
from bench.machine import GPU_TYPE, Machine, running_machine
from bench.page import Section
from gpudev.adapters.local.sandbox.isolation import Isolation, probe_isolation
from gpudev.client.errors import ClientError
from gpudev.client.session import Client
from gpudev.texts.vocabulary import TERMINAL
from gpudev.wire.jobs import JobEvent, SubmitRequest

TITLE = "Claiming a dev server"
COMMAND = "python -m bench claim"
_PATIENCE_SECONDS = 120.0


@dataclass(frozen=True, slots=True)
class Subjects:
    """What is compared, all of it ready."""

    machine: Machine
    request: SubmitRequest
    by_hand: PreparedStart
    cold: ColdStart


def measure(quick: bool = False) -> Section:  # noqa: FBT001, FBT002 - one switch, the same for every benchmark
    effort = QUICK if quick else Effort()
    parts = [introduce(effort)]
    for isolation in dict.fromkeys((probe_isolation(), Isolation.NONE)):
        with running_machine(isolation) as machine:
            in_a_row, at_once = asyncio.run(_measure_machine(machine, effort))
        parts += [f"### Isolation: {isolation.value}", report(in_a_row, at_once, effort)]
    return Section(TITLE, COMMAND, "\n\n".join(parts))


async def _measure_machine(machine: Machine, effort: Effort) -> tuple[Findings, Findings]:
    cold = ColdStart(machine.home / "cold", machine.isolation, make_public_key())
    async with prepared_starts(machine.home / "by-hand", machine.fleet_file, machine.isolation) as by_hand:
        subjects = Subjects(machine, _make_request(), by_hand, cold)
        await _claim_in_a_row(subjects, effort.warm_ups)
        in_a_row = await _claim_in_a_row(subjects, effort.in_a_row)
        at_once = Findings()
        for _ in range(effort.rounds):
            await _claim_at_once(subjects, effort.at_once, at_once)
    return in_a_row, at_once


async def _claim_in_a_row(subjects: Subjects, count: int) -> Findings:
    found = Findings()
    with subjects.machine.client() as client:
        for _ in range(count):
            await asyncio.sleep(SETTLE_SECONDS)
            found.by_hand.append(await _start_and_end_by_hand(subjects.by_hand))
            await asyncio.sleep(SETTLE_SECONDS)
            found.claims.append(await asyncio.to_thread(_claim_and_cancel, client, subjects.request))
            await asyncio.sleep(SETTLE_SECONDS)
            found.cold.append(await asyncio.to_thread(subjects.cold.time_start))
    return found


async def _start_and_end_by_hand(by_hand: PreparedStart) -> float:
    reservation_id, seconds = await by_hand.time_start()
    await by_hand.end(reservation_id)
    return seconds


async def _claim_at_once(subjects: Subjects, count: int, found: Findings) -> None:
    started = await asyncio.gather(*(subjects.by_hand.time_start() for _ in range(count)))
    await asyncio.gather(*(subjects.by_hand.end(reservation_id) for reservation_id, _ in started))
    found.by_hand += [seconds for _, seconds in started]
    found.claims += await asyncio.to_thread(_claim_in_threads, subjects, count)


def _claim_in_threads(subjects: Subjects, count: int) -> list[Claim]:
    together = threading.Barrier(count)

    def claim_together(_number: int) -> Claim:
        try:
            with subjects.machine.client() as client:
                return _claim_and_cancel(client, subjects.request, together)
        except ClientError:
            together.abort()
            raise

    with ThreadPoolExecutor(count) as threads:
        return list(threads.map(claim_together, range(count)))


def _claim_and_cancel(
    client: Client, request: SubmitRequest, together: threading.Barrier | None = None
) -> Claim:
    """One claim, ended and cleaned up; with others, none is asked for or ended before all are there."""
    client.whoami()  # An idle connection may have been closed: this opens it before the clock runs.
    if together is not None:
        together.wait(_PATIENCE_SECONDS)
    reservation_id, claim = _claim(client, request)
    if together is not None:
        together.wait(_PATIENCE_SECONDS)
    client.cancel(reservation_id)
    client.wait_until_clean(reservation_id, timeout=_PATIENCE_SECONDS)
    return claim


def _claim(client: Client, request: SubmitRequest) -> tuple[str, Claim]:
    began_at, began = time.time(), time.perf_counter()
    reservation_id = client.reserve(request).job_id
    accepted = time.perf_counter()
    events = _follow_until_active(client, reservation_id)
    heard = time.perf_counter()
    job = client.get(reservation_id)
    assert job.node_ip is not None
    assert job.node_port is not None
    read_first_byte(job.node_ip, job.node_port)
    first_byte = time.perf_counter()
    placed_at = events["placed"].at.timestamp()
    return reservation_id, Claim(
        accepted=accepted - began,
        first_turn=placed_at - began_at,
        row_to_turn=placed_at - events["submitted"].at.timestamp(),
        found_ready=events["active"].at.timestamp() - began_at,
        heard_as_active=heard - began,
        first_byte=first_byte - began,
    )


def _follow_until_active(client: Client, reservation_id: str) -> dict[str, JobEvent]:
    """The events by kind. They carry the wall clock of this same machine, which the controllers read too."""
    events: dict[str, JobEvent] = {}
    for event in client.events(reservation_id, timeout=_PATIENCE_SECONDS):
        if event is not None:
            events[event.kind] = event
            if event.kind == "active":
                break
            if event.kind in TERMINAL:
                raise RuntimeError(f"Reservation {reservation_id} is {event.status}: {event.message}")
    return events


def _make_request() -> SubmitRequest:
    return SubmitRequest(
        gpu_type=GPU_TYPE, gpu_count=1, duration_hours=1, ssh_public_keys=[make_public_key()]
    )
