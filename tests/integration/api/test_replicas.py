"""Several API processes on one database: events are told by each, and a stream goes on at another."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, datetime
from http.client import HTTPException
from pathlib import Path
from typing import Any

import pytest

from gpudev.domain.names import NodeName, ReservationId
from gpudev.domain.plans.turn import Record
from gpudev.domain.reservation import Event, Reservation, clean, end, place, queue
from gpudev.texts.fact import fact
from gpudev.texts.vocabulary import EventKind, Reason, Status
from tests.integration.api.conftest import Person
from tests.integration.api.test_jobs import read_event
from tests.support.api_server import ApiServer, running_api
from tests.support.reservations import open_test_stores


@pytest.fixture
def replicas(module_database: str, tmp_path: Path) -> Iterator[tuple[ApiServer, ApiServer]]:
    """Two processes of their own, each on a socket of its own, and one state folder."""
    with ExitStack() as stack:
        one, other = (stack.enter_context(running_api(module_database, tmp_path)) for _ in range(2))
        yield one, other


def requeue(reservation: Reservation) -> tuple[Reservation, EventKind]:
    """There and back: a history can be made as long as one likes."""
    now = datetime.now(UTC)
    if reservation.state.status is Status.PREPARING:
        return queue(
            reservation, Reason.PLACEMENT_LOST, fact("words", words="Back in the queue.")
        ), EventKind.REQUEUED
    return place(reservation, (NodeName("t4-0"),), now), EventKind.PLACED


def cancel(reservation: Reservation) -> tuple[Reservation, EventKind]:
    now = datetime.now(UTC)
    return end(reservation, Status.CANCELLED, Reason.CANCELLED_BY_USER, now), EventKind.CANCELLED


def tidy(reservation: Reservation) -> tuple[Reservation, EventKind]:
    return clean(reservation, datetime.now(UTC)), EventKind.CLEANED


async def make_events(dsn: str, job_id: str, *moves: Any) -> None:
    """What a controller would write, on a connection of its own."""
    async with open_test_stores(dsn) as stores:
        for move in moves:
            before = await stores.reservations.get(ReservationId(job_id))
            after, kind = move(before)
            event = Event(
                kind, fact("words", words=f"It is {kind} now."), datetime.now(UTC), after.state.reason
            )
            async with stores.admissions.lock("t4") as transaction:
                assert await transaction.record(Record(before, after, event))


def read_numbers(stream: Any, until: int) -> list[int]:
    """The numbers of the events up to this one."""
    numbers: list[int] = []
    while not numbers or numbers[-1] < until:
        event = read_event(stream)
        if "id" in event:
            numbers.append(int(event["id"]))
    return numbers


def read_all(stream: Any) -> list[int]:
    """The numbers of all events until the stream ends, by itself or by the death of its server."""
    numbers: list[int] = []
    try:
        while event := read_event(stream):
            if "id" in event:
                numbers.append(int(event["id"]))
    except (OSError, HTTPException):
        pass
    return numbers


def test_a_job_of_one_process_is_followed_at_another(
    replicas: tuple[ApiServer, ApiServer], ada: Person, module_database: str
) -> None:
    one, other = replicas
    job_id = Person(one, ada.username, ada.key).submit().json["job_id"]
    with other.stream(f"/v1/jobs/{job_id}/events", ada.key) as stream:
        assert read_numbers(stream, until=1) == [1]
        for number in range(2, 7):
            asyncio.run(make_events(module_database, job_id, requeue))
            assert read_numbers(stream, until=number) == [number], "live, one by one"
        asyncio.run(make_events(module_database, job_id, cancel, tidy))
        assert read_all(stream) == [7, 8], "and the stream ends when nothing more can come"


def test_a_stream_goes_on_at_another_process_without_loss_or_doubles(
    replicas: tuple[ApiServer, ApiServer], ada: Person, module_database: str
) -> None:
    one, other = replicas
    job_id = Person(one, ada.username, ada.key).submit().json["job_id"]
    path = f"/v1/jobs/{job_id}/events"
    with one.stream(path, ada.key) as stream:
        asyncio.run(make_events(module_database, job_id, requeue, requeue))
        told = read_numbers(stream, until=3)
        one.kill()
        # These happen while nobody is told of them.
        asyncio.run(make_events(module_database, job_id, requeue, requeue, requeue))
        told += read_all(stream)
    with other.stream(path, ada.key, Last_Event_ID=str(told[-1])) as stream:
        told += read_numbers(stream, until=6)
        asyncio.run(make_events(module_database, job_id, requeue, cancel, tidy))
        told += read_all(stream)
    assert told == list(range(1, 10))


def test_a_killed_process_is_replaced_on_the_same_socket(
    replicas: tuple[ApiServer, ApiServer], ada: Person
) -> None:
    """Who comes in between waits, and is answered by the next one."""
    one, _ = replicas
    person = Person(one, ada.username, ada.key)
    first = person.submit("survives").json["job_id"]
    one.kill()
    one.start()
    assert person.submit("survives").json["job_id"] == first
