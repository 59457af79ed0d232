"""The service keeps to its own OpenAPI document whatever it is asked, and tells nobody about others.

Schemathesis makes the requests from the document: good ones, odd ones and wrong ones.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis.strategies import booleans
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.core.result import Ok
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from gpudev.domain.names import ReservationId
from gpudev.domain.plans.turn import Record
from gpudev.domain.reservation import Event, clean, end
from gpudev.texts.fact import fact
from gpudev.texts.vocabulary import EventKind, Reason, Status
from tests.integration.api.conftest import Person, add_key, offer_types
from tests.support.api_server import TIMEOUT_SECONDS, ApiServer, running_api
from tests.support.budgets import choose_depth
from tests.support.reservations import open_test_stores

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]
CALLERS = ("owner", "stranger", "admin", "nobody")
SETTINGS = {
    "GPU_DEV_ADMINS": "local:admin",
    # Nobody shall be stopped, and a key that was rotated is used again.
    "GPU_DEV_REQUESTS_PER_SECOND": "0",
    "GPU_DEV_WRONG_KEYS_PER_MINUTE": "0",
    "GPU_DEV_KEY_OVERLAP_SECONDS": "3600",
}
NAME, VALUE = "private-name-of-mine", "private-value-of-mine"
"""What the owner's reservation is called and what its environment holds: nobody else's business."""
SUPPRESSED = [HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.function_scoped_fixture]
QUICK = settings(max_examples=8, deadline=None, derandomize=True, suppress_health_check=SUPPRESSED)
THOROUGH = settings(
    max_examples=choose_depth(long=25, soak=150), deadline=None, suppress_health_check=SUPPRESSED
)


@dataclass(frozen=True, slots=True)
class World:
    server: ApiServer
    keys: dict[str, str | None]
    owned: dict[str, str]
    """What the owner has, by the names that paths give it, and a user whom nobody needs."""


@pytest.fixture(scope="module")
def api_server(module_database: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    asyncio.run(offer_types(module_database))
    with running_api(module_database, Path(tmp_path_factory.mktemp("state")), SETTINGS) as server:
        yield server


@pytest.fixture(scope="module")
def world(api_server: ApiServer, make_person: Callable[..., Person], module_database: str) -> World:
    owner = make_person("owner")
    keys = {"owner": owner.key, "nobody": None} | {
        name: make_person(name).key for name in ("stranger", "admin", "scapegoat")
    }
    asyncio.run(add_key(module_database, owner.username, "temporary-key-of-owner"))
    job = owner.submit(name=NAME, env_vars={"A": VALUE}).json["job_id"]
    operation = owner.call("POST", f"/v1/jobs/{job}/cancel").json["operation_id"]
    asyncio.run(_clean_up(module_database, job))
    owned = {"job_id": job, "operation_id": operation, "prefix": "temporary-ke", "name": "scapegoat"}
    return World(api_server, keys, owned)


def test_every_answer_is_documented(world: World) -> None:
    _ask_everything(world, QUICK)


@pytest.mark.long
def test_every_answer_is_documented_at_length(world: World) -> None:
    _ask_everything(world, THOROUGH)


def _ask_everything(world: World, budget: settings) -> None:
    """Each question by every caller: to make one up takes longer than to have it answered."""
    address = f"http://{world.server.authority}/openapi.json"
    document = schemathesis.openapi.from_url(address, timeout=TIMEOUT_SECONDS)
    for found in document.get_all_operations():
        assert isinstance(found, Ok)
        operation = found.ok()
        good, wrong = (operation.as_strategy(generation_mode=mode) for mode in GenerationMode)

        @budget
        @given(case=good | wrong, is_aimed=booleans())
        def check(case: schemathesis.Case[Any], *, is_aimed: bool) -> None:
            for caller in CALLERS:
                _check(case, world, caller, is_aimed=is_aimed)

        check()


def _check(case: schemathesis.Case[Any], world: World, caller: str, *, is_aimed: bool) -> None:
    if is_aimed:
        case.path_parameters.update({name: world.owned[name] for name in case.path_parameters})
    case.headers.pop("Authorization", None)
    if key := world.keys[caller]:
        case.headers["Authorization"] = f"Bearer {key}"
    response = case.call(timeout=TIMEOUT_SECONDS)
    case.validate_response(response, checks=CHECKS)
    if caller in {"stranger", "nobody"}:
        assert not [secret for secret in (NAME, VALUE) if secret in response.text]
    if caller == "nobody" and case.operation.definition.raw.get("security"):
        # A body that is no JSON at all is told so before anybody looks for a key.
        assert response.status_code in {401, 422} or response.json()["code"] == "http_error"


async def _clean_up(dsn: str, job_id: str) -> None:
    """Bring it to its very end, so that the stream of its events ends, too."""
    async with open_test_stores(dsn) as stores:
        now = datetime.now(UTC)
        claim = await stores.reservations.claim(ReservationId(job_id), timedelta(minutes=1))
        assert claim is not None
        before = claim.reservation
        after = end(before, Status.CANCELLED, Reason.CANCELLED_BY_USER, now)
        ended = await stores.reservations.record(
            claim, Record(before, after, Event(EventKind.CANCELLED, fact("words", words="Cancelled."), now))
        )
        event = Event(EventKind.CLEANED, fact("words", words="Cleaned."), now)
        await stores.reservations.record(
            replace(claim, reservation=ended), Record(ended, clean(ended, now), event)
        )
