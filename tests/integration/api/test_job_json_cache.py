"""Documents are kept for as long as they are right, and no longer."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, timedelta
from types import SimpleNamespace
from typing import cast
from zoneinfo import ZoneInfo

import orjson
import pytest

from gpudev.api.encoding import encode
from gpudev.api.job_json_cache import JobJsonCache
from gpudev.api.views import job_detail
from gpudev.app.application import Application, ClusterInfo
from gpudev.app.identity import Visitor
from gpudev.bootstrap.foundation import Stores, SystemClock
from gpudev.domain.catalogue import DEFAULT_CATALOGUE
from gpudev.domain.names import NodeName, ReservationId
from gpudev.domain.plans.turn import Record
from gpudev.domain.reservation import Event, Reservation, place
from gpudev.ports.reservations import ListQuery, Mark, Marked
from gpudev.ports.users import NewKey, ShownKey, User
from gpudev.texts.fact import fact
from gpudev.texts.vocabulary import EventKind
from tests.integration.api.conftest import Person
from tests.support.reservations import NOON, make_reservation, open_test_stores, submit

pytestmark = pytest.mark.anyio


@pytest.fixture
async def stores(database: str) -> AsyncIterator[Stores]:
    async with open_test_stores(database) as opened:
        yield opened


@pytest.fixture
async def user(stores: Stores) -> User:
    user = await stores.users.upsert("ada")
    await stores.users.add_key(user.user_id, NewKey(b"ada", "prefix", NOON + timedelta(hours=2)))
    return user


@pytest.fixture
def app(stores: Stores) -> Application:
    """As much of an application as documents need."""
    facts = SimpleNamespace(
        reservations=stores.reservations,
        cluster=ClusterInfo(DEFAULT_CATALOGUE),
        now=SystemClock().now,
    )
    return cast("Application", facts)


async def test_a_document_is_made_once_and_again_after_a_change(
    stores: Stores, user: User, app: Application
) -> None:
    placed = await place_one(stores, user)
    documents = JobJsonCache(app)
    first = await documents.of(await read_marks(stores), UTC)
    [second] = await documents.of(await read_marks(stores), UTC)
    assert second is first[0]
    assert text_of([second]) == encode([job_detail(placed, app.cluster, NOON)])
    await stores.database.execute(
        "UPDATE reservation_records SET detail = $1", fact("words", words="Nearly there.")
    )
    [third] = await documents.of(await read_marks(stores), UTC)
    assert b"Nearly there." in text_of([third])


async def test_a_waiting_reservation_is_told_anew_when_its_wait_is_shorter_by_a_minute(
    stores: Stores, user: User, app: Application
) -> None:
    """How long it still waits changes by itself."""
    await submit(stores, make_reservation(user))
    start = NOON + timedelta(minutes=10)
    await stores.database.execute(
        "UPDATE reservation_records SET status = 'queued', estimated_start_at = $1", start
    )
    now = NOON
    moving = SimpleNamespace(reservations=app.reservations, cluster=app.cluster, now=lambda: now)
    documents, marks = JobJsonCache(cast("Application", moving)), await read_marks(stores)
    [first], [second] = await documents.of(marks, UTC), await documents.of(marks, UTC)
    assert first is second
    assert orjson.loads(text_of([first]))[0]["estimated_wait_minutes"] == 10
    now = NOON + timedelta(seconds=59)
    assert await documents.of(marks, UTC) == [first]
    now = NOON + timedelta(seconds=60)
    assert orjson.loads(text_of(await documents.of(marks, UTC)))[0]["estimated_wait_minutes"] == 9
    now = start + timedelta(hours=1)
    [late] = await documents.of(marks, UTC)
    assert orjson.loads(text_of([late]))[0]["estimated_wait_minutes"] == 0
    assert await documents.of(marks, UTC) == [late]


async def test_one_is_found_by_its_id_and_made_once(stores: Stores, user: User, app: Application) -> None:
    placed = await place_one(stores, user)

    async def find_news(
        visitor: ShownKey, reservation_id: ReservationId, known: Mark | None
    ) -> Marked | None:
        _, mark, found = await stores.reservations.find_for_key(visitor, reservation_id, known)
        return Marked(mark, found) if mark and found else None

    reading = SimpleNamespace(
        reservations=SimpleNamespace(find_news=find_news), cluster=app.cluster, now=app.now
    )
    documents = JobJsonCache(cast("Application", reading), max_documents=1)
    key = cast("Visitor", ShownKey(b"ada", NOON))
    first = await documents.find(key, placed.id, UTC)
    assert await documents.find(key, placed.id, UTC) is first
    assert await documents.find(key, placed.id, ZoneInfo("Europe/Berlin")) is not first
    assert text_of([await documents.find(key, placed.id, UTC)]) == text_of([first]), (
        "forgotten, and read anew"
    )
    await stores.database.execute(
        "UPDATE reservation_records SET detail = $1", fact("words", words="Nearly there.")
    )
    assert b"Nearly there." in text_of([await documents.find(key, placed.id, UTC)])


async def test_what_was_asked_for_last_is_kept(stores: Stores, user: User, app: Application) -> None:
    for _ in range(3):
        await place_one(stores, user)
    documents, [one, two, three] = JobJsonCache(app, max_documents=2), await read_marks(stores)
    [first, _] = await documents.of([one, two], UTC)
    [third, again] = await documents.of([three, one], UTC)
    assert again is first
    assert await documents.of([one, three], UTC) == [first, third]
    assert text_of(await documents.of([one, two, three], UTC)) == text_of(
        [
            *await JobJsonCache(app).of([one], UTC),
            *await JobJsonCache(app).of([two], UTC),
            *await JobJsonCache(app).of([three], UTC),
        ]
    )


def test_a_list_shows_each_job_as_it_is_shown_alone(ada: Person) -> None:
    """A waiting one, one that is being cancelled, and again when everything is known already."""
    jobs = [ada.submit().json["job_id"] for _ in range(3)]
    ada.call("POST", f"/v1/jobs/{jobs[0]}/cancel")
    for _ in range(2):
        listed = {job["job_id"]: job for job in ada.call("GET", "/v1/jobs").json["jobs"]}
        filtered = {job["job_id"]: job for job in ada.call("GET", "/v1/jobs?gpu_type=t4").json["jobs"]}
        alone = {job: ada.get(job) for job in jobs}
        assert {job: listed[job] for job in jobs} == {job: filtered[job] for job in jobs} == alone


async def place_one(stores: Stores, user: User) -> Reservation:
    asked = await submit(stores, make_reservation(user))
    after = place(asked, (NodeName("t4-0"),), NOON)
    async with stores.admissions.lock("t4") as transaction:
        assert await transaction.record(
            Record(asked, after, Event(EventKind.PLACED, fact("words", words="Placed."), NOON))
        )
    return await stores.reservations.get(asked.id)


async def read_marks(stores: Stores) -> tuple[Mark, ...]:
    _, page = await stores.reservations.list_marks_for_key(ShownKey(b"ada", NOON), ListQuery())
    return page.marks


def text_of(documents: list[orjson.Fragment]) -> bytes:
    return orjson.dumps(documents)
