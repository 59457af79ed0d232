"""The client against a server that answers as it is told: login, calls, waiting."""

from __future__ import annotations

import hmac
import stat
import threading
from collections.abc import Iterator
from datetime import timedelta

import pytest

from gpudev.client import codec, sse
from gpudev.client.errors import LoginFailed, NotActive, NotFound, TimedOut, Unreachable
from gpudev.client.session import Client, connect
from gpudev.wire.jobs import SubmitRequest
from tests.support.fake_api import SECRET, FakeApi, Reply, login_answer
from tests.support.wire_values import A_JOB, ACTIVE, AVAILABILITY, JOB_ID, STATUS, an_event, as_sse
from tests.unit.client.conftest import Home

LOGIN = ("POST", "/v1/auth/local-login")
UNKNOWN_KEY = Reply(401, {"detail": "The API key is unknown.", "code": "unauthenticated", "hint": ""})
WHO = Reply(body={"user_id": 1, "username": "ada"})
JOB_PATH = f"/v1/jobs/{JOB_ID}"
A_REQUEST = SubmitRequest(gpu_type="h100", gpu_count=2, duration_hours=4.0)
SUBMITTED = {"job_id": JOB_ID, "reservation_id": JOB_ID, "status": "pending", "message": "Accepted."}


@pytest.fixture
def client(home: Home) -> Iterator[Client]:
    with connect(home.surroundings) as client:
        yield client


def test_the_proof_is_an_hmac_and_the_secret_stays_here(api: FakeApi, client: Client) -> None:
    api.on("GET", "/v1/me", WHO)
    assert client.whoami().username == "ada"
    (login,) = api.seen(*LOGIN)
    sent = login.json
    text = f"{sent['timestamp']}\n{sent['nonce']}\n{api.url.removeprefix('http://')}"
    assert sent["proof"] == hmac.new(SECRET, text.encode(), "sha256").hexdigest()
    assert SECRET not in login.body
    assert api.seen("GET", "/v1/me")[0].headers["authorization"] == "Bearer key-1"


def test_the_key_is_kept_in_a_private_file_and_used_again(api: FakeApi, client: Client, home: Home) -> None:
    api.on("GET", "/v1/me", WHO)
    client.whoami()
    client.whoami()
    with connect(home.surroundings) as another:
        another.whoami()
    assert len(api.seen(*LOGIN)) == 1
    assert stat.S_IMODE(home.surroundings.credentials_file.stat().st_mode) == 0o600


def test_a_key_that_is_about_to_end_is_replaced(api: FakeApi, client: Client, home: Home) -> None:
    api.on("GET", "/v1/me", WHO)
    api.on(
        *LOGIN, Reply(body=login_answer("key-1", timedelta(seconds=30))), Reply(body=login_answer("key-2"))
    )
    client.whoami()
    with connect(home.surroundings) as another:
        another.whoami()
    assert [seen.headers["authorization"] for seen in api.seen("GET", "/v1/me")] == [
        "Bearer key-1",
        "Bearer key-2",
    ]


def test_a_key_that_is_refused_leads_to_one_more_login(api: FakeApi, client: Client) -> None:
    api.on(*LOGIN, Reply(body=login_answer("old")), Reply(body=login_answer("new")))
    api.on("GET", "/v1/me", WHO, UNKNOWN_KEY, WHO)
    client.whoami()
    assert client.whoami().username == "ada"
    assert api.requests[-1].headers["authorization"] == "Bearer new"


def test_a_second_refusal_is_final(api: FakeApi, client: Client) -> None:
    api.on("GET", "/v1/me", UNKNOWN_KEY)
    with pytest.raises(LoginFailed, match="API key is unknown"):
        client.whoami()
    assert len(api.seen("GET", "/v1/me")) == 2


def test_a_missing_login_file_means_that_no_server_was_started(client: Client, home: Home) -> None:
    home.login_file.unlink()
    with pytest.raises(Unreachable, match="no login file") as caught:
        client.whoami()
    assert caught.value.hint == "Start it with: gpu-dev up"


def test_a_submit_is_repeated_with_the_same_key(api: FakeApi, client: Client) -> None:
    api.on("POST", "/v1/jobs/submit", Reply(is_dropped=True), Reply(body=SUBMITTED))
    assert client.reserve(A_REQUEST).reservation_id == JOB_ID
    first, second = api.seen("POST", "/v1/jobs/submit")
    assert first.headers["idempotency-key"] == second.headers["idempotency-key"]
    assert first.json == codec.encode(A_REQUEST)


def test_two_submits_have_two_keys(api: FakeApi, client: Client) -> None:
    api.on("POST", "/v1/jobs/submit", Reply(body=SUBMITTED))
    client.reserve(A_REQUEST)
    client.reserve(A_REQUEST)
    assert len({seen.headers["idempotency-key"] for seen in api.seen("POST", "/v1/jobs/submit")}) == 2


def test_listing_asks_for_what_is_wanted(api: FakeApi, client: Client) -> None:
    api.on(
        "GET", "/v1/jobs", Reply(body={"jobs": [codec.encode(A_JOB)], "total": 1, "limit": 50, "offset": 0})
    )
    assert client.list(statuses=["active", "queued"], gpu_type="h100", limit=10).jobs == [A_JOB]
    assert client.list().total == 1
    assert [seen.path for seen in api.seen("GET", "/v1/jobs")] == [
        "/v1/jobs?status=active,queued&gpu_type=h100&limit=10",
        "/v1/jobs",
    ]


def test_what_a_user_types_is_one_segment_of_the_path(api: FakeApi, client: Client) -> None:
    with pytest.raises(NotFound):
        client.get("../admin?x=1")
    assert api.requests[-1].path == "/v1/jobs/..%2Fadmin%3Fx%3D1"


def test_the_cluster_in_values(api: FakeApi, client: Client) -> None:
    api.on("GET", "/v1/gpu/availability", Reply(body=codec.encode(AVAILABILITY)))
    api.on("GET", "/v1/cluster/status", Reply(body=codec.encode(STATUS)))
    assert client.availability() == AVAILABILITY
    assert client.status() == STATUS


def test_actions_and_their_operations(api: FakeApi, client: Client) -> None:
    action = {
        "job_id": JOB_ID,
        "action": "cancel",
        "status": "requested",
        "message": "",
        "operation_id": "op",
    }
    operation = {
        "operation_id": "op",
        "action": "cancel",
        "status": "done",
        "started_at": "2030-01-01T00:00:00Z",
    }
    api.on("POST", f"{JOB_PATH}/cancel", Reply(body=action))
    api.on("GET", "/v1/operations/op", Reply(body=operation))
    assert client.get_operation(client.cancel(JOB_ID).operation_id).status == "done"


def test_waiting_ends_with_the_status_asked_for(api: FakeApi, client: Client) -> None:
    events = as_sse(an_event(1, "submitted", "pending"), an_event(2, "placed", "active"))
    api.on("GET", f"{JOB_PATH}/events", Reply(stream=events))
    api.on("GET", JOB_PATH, Reply(body=codec.encode(ACTIVE)))
    assert client.wait_until(JOB_ID, ["active"]) == ACTIVE


def test_waiting_for_what_cannot_come_any_more_fails(api: FakeApi, client: Client) -> None:
    api.on("GET", f"{JOB_PATH}/events", Reply(stream=as_sse(an_event(1, "failed", "failed", "No image."))))
    with pytest.raises(NotActive, match="No image"):
        client.wait_until(JOB_ID, ["active"])


def test_a_lost_stream_is_taken_up_where_it_was(
    api: FakeApi, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sse, "RECONNECT_PAUSE", 0.0)
    first, last = an_event(1, "cancelled", "cancelled"), an_event(2, "cleaned", "cancelled")
    api.on("GET", f"{JOB_PATH}/events", Reply(stream=as_sse(first)), UNKNOWN_KEY, Reply(stream=as_sse(last)))
    assert list(client.events(JOB_ID)) == [first, last]
    marks = [seen.headers.get("last-event-id") for seen in api.seen("GET", f"{JOB_PATH}/events")]
    assert marks == [None, "1", "1"]


def test_a_wait_with_a_limit_ends_in_spite_of_an_open_stream(api: FakeApi, client: Client) -> None:
    hold = threading.Event()
    api.on("GET", f"{JOB_PATH}/events", Reply(stream=as_sse(an_event(1, "queued", "queued")), hold=hold))
    try:
        with pytest.raises(TimedOut):
            client.wait_until(JOB_ID, ["active"], timeout=0.1)
    finally:
        hold.set()


def test_events_of_an_unknown_reservation(client: Client) -> None:
    with pytest.raises(NotFound):
        list(client.events("nothing"))
