"""The queue as everybody sees it, and one's own part of it."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

from gpudev.domain.names import ReservationId
from gpudev.domain.plans.turn import Record
from gpudev.domain.queue import QueuePlace
from gpudev.domain.reservation import Event, queue
from gpudev.texts.fact import fact
from gpudev.texts.vocabulary import EventKind, Reason
from tests.integration.api.conftest import Person
from tests.support.reservations import open_test_stores


async def _give_place(dsn: str, job_id: str, position: int, start: datetime) -> None:
    """What admission would write."""
    async with open_test_stores(dsn) as stores, stores.admissions.lock("t4") as transaction:
        before = await stores.reservations.get(ReservationId(job_id))
        now = datetime.now(UTC)
        reason, detail = (
            Reason.WAITING_FOR_CAPACITY,
            fact("words", words="Reservation 7f3a91c2 is in the way."),
        )
        after = queue(before, reason, detail)
        assert await transaction.record(Record(before, after, Event(EventKind.QUEUED, detail, now, reason)))
        await transaction.set_queue_places([QueuePlace(before.id, position, start, reason, detail)], now)


def test_everybody_who_waits_is_shown_and_details_only_of_ones_own(
    ada: Person, eve: Person, module_database: str
) -> None:
    assert ada.call("GET", "/v1/queue").json["queue"] == {}
    first = ada.submit(gpu_count=4, name="adas-big-run").json["job_id"]
    second = eve.submit(gpu_count=2, name="eves-secret", duration_hours=2).json["job_id"]
    start = datetime.now(UTC) + timedelta(minutes=30)
    asyncio.run(_give_place(module_database, first, 1, start))

    seen_by_ada = ada.call("GET", "/v1/queue").json
    assert seen_by_ada["total"] == 2
    mine, others = seen_by_ada["queue"]["t4"]
    assert (mine["position"], mine["gpu_count"], mine["user_id"], mine["is_own"]) == (1, 4, "ada", True)
    assert (mine["job_id"], mine["name"], mine["reason"]) == (first, "adas-big-run", "waiting_for_capacity")
    assert "7f3a91c2" in mine["current_detailed_status"]
    assert mine["estimated_wait_minutes"] in {29, 30}
    assert set(others) == {"gpu_count", "user_id", "is_own", "status", "created_at", "duration_hours"}
    assert (others["user_id"], others["gpu_count"], others["status"]) == ("eve", 2, "pending")

    seen_by_eve = eve.call("GET", "/v1/queue")
    assert first not in seen_by_eve.text
    assert "7f3a91c2" not in seen_by_eve.text
    assert "adas-big-run" not in seen_by_eve.text
    theirs, mine = seen_by_eve.json["queue"]["t4"]
    assert (theirs["position"], theirs["user_id"]) == (1, "ada")
    assert theirs["estimated_start_at"]
    assert mine["job_id"] == second
