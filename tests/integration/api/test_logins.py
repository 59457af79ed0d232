"""How long a login lasts, what its keys leave behind, and that failed logins are nobody else's trouble."""

from __future__ import annotations

import asyncio
import http.client
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from tests.integration.api.conftest import Person, offer_types
from tests.integration.api.test_access import log_in
from tests.support.api_server import ApiServer, running_api

LOGIN_FAILURES = 20
TRIES = 8
DEADLINE_SECONDS = 20


@pytest.fixture(scope="module")
def api_server(module_database: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """Two processes, a login that ends before its first key would, and the usual limit on failures."""
    asyncio.run(offer_types(module_database))
    changes = {
        "GPU_DEV_LOGIN_HOURS": "1",
        "API_KEY_TTL_HOURS": "2",
        "GPU_DEV_LOGIN_FAILURES": str(LOGIN_FAILURES),
        "GPU_DEV_ADMINS": "local:grace",
        "GPU_DEV_REQUESTS_PER_SECOND": "0",
        "GPU_DEV_WRONG_KEYS_PER_MINUTE": "0",
    }
    with running_api(module_database, Path(tmp_path_factory.mktemp("state")), changes) as server:
        server.start()
        yield server


@pytest.fixture(scope="module")
def grace(make_person: Callable[..., Person]) -> Person:
    return make_person("grace")


def rotate(server: ApiServer, key: str) -> tuple[int, dict[str, Any]]:
    answer = server.call("POST", "/v1/keys/rotate", key=key)
    return answer.status, answer.json


def works(server: ApiServer, key: str) -> bool:
    return server.call("GET", "/v1/me", key=key).status == 200


def test_no_rotation_outlives_the_login(api_server: ApiServer) -> None:
    first = log_in(api_server).json
    assert first["ttl_hours"] == 1, "the login ends sooner than the key would"
    key = first["api_key"]
    for _ in range(3):
        status, rotated = rotate(api_server, key)
        assert status == 200
        assert datetime.fromisoformat(rotated["expires_at"]) <= datetime.fromisoformat(first["expires_at"])
        key = rotated["api_key"]
    assert works(api_server, key)


def test_a_key_has_one_successor_however_many_ask_at_once(api_server: ApiServer) -> None:
    key = log_in(api_server).json["api_key"]
    with ThreadPoolExecutor(TRIES) as threads:
        answers = list(threads.map(lambda _: rotate(api_server, key), range(TRIES)))
    (successor,) = [body["api_key"] for status, body in answers if status == 200]
    refused = {(status, body["code"]) for status, body in answers if status != 200}
    assert refused == {(409, "key_has_successor")}
    assert works(api_server, successor)
    assert works(api_server, key), "within the overlap"
    assert rotate(api_server, key)[0] == 409, "still, after the first answers"


def test_failed_logins_from_the_same_address_never_stop_a_correct_one(
    api_server: ApiServer, grace: Person
) -> None:
    """What a program inside a dev server of the same machine can do to its owner."""
    statuses = [log_in(api_server, secret=b"guessed").status for _ in range(LOGIN_FAILURES + 5)]
    assert statuses[0] == 401
    assert statuses[-1] == 429, "who fails goes on being limited"
    answer = log_in(api_server)
    assert (answer.status, "api_key" in answer.json) == (200, True)
    written = grace.call("GET", "/v1/admin/audit?action=login&limit=500").json["entries"]
    refused = [entry for entry in written if entry["outcome"] == "refused"]
    assert len(refused) <= LOGIN_FAILURES


class TestOpenStreams:
    """A stream ends with its key, in whichever process it is open, long before the next heartbeat."""

    def test_a_revoked_key(self, api_server: ApiServer, make_person: Callable[..., Person]) -> None:
        person = make_person("streaming")
        another = Person(person.server, person.username, rotate(api_server, person.key)[1]["api_key"])
        self.check_all_end(person, lambda: another.call("DELETE", f"/v1/keys/{person.key[:8]}"))

    def test_a_disabled_user(self, make_person: Callable[..., Person], grace: Person) -> None:
        person = make_person("leaving")
        self.check_all_end(person, lambda: grace.call("POST", "/v1/admin/users/leaving/disable"))

    def check_all_end(self, person: Person, revoke: Callable[[], Any]) -> None:
        """There are more streams than processes, so that each process has some."""
        path = f"/v1/jobs/{person.submit().json['job_id']}/events"
        connections = [self.open_stream(person, path) for _ in range(TRIES)]
        try:
            for _, stream in connections:
                assert stream.readline() == b"id: 1\n"
            assert revoke().status == 200
            for connection, stream in connections:
                # Shorter than the time between two heartbeats: only the signal can have ended it.
                connection.sock.settimeout(10)
                assert stream.read().endswith((b": unauthenticated\n\n", b": not_allowed\n\n"))
        finally:
            for connection, _ in connections:
                connection.close()

    def open_stream(
        self, person: Person, path: str
    ) -> tuple[http.client.HTTPConnection, http.client.HTTPResponse]:
        connection = http.client.HTTPConnection(person.server.host, person.server.port, timeout=30)
        connection.request("GET", path, headers={"Authorization": f"Bearer {person.key}"})
        stream = connection.getresponse()
        assert stream.status == 200
        return connection, stream


def test_denied_admins_and_wrong_keys_do_not_fill_the_audit_log(
    api_server: ApiServer, make_person: Callable[..., Person], grace: Person
) -> None:
    eve = make_person("eve")
    for number in range(60):
        assert eve.call("POST", f"/v1/admin/users/nobody{number}/disable").status == 403
    denied = grace.call("GET", "/v1/admin/audit?user=eve&action=admin&limit=500").json["entries"]
    assert 1 <= len(denied) <= 20, "ten from each of two processes"


def test_wrong_keys_are_written_by_their_address(api_server: ApiServer, grace: Person) -> None:
    for number in range(60):
        assert api_server.call("GET", "/v1/me", key=f"{number:043}").status == 401
    entries: list[dict[str, Any]] = []
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not entries and time.monotonic() < deadline:
        found = grace.call("GET", "/v1/admin/audit?action=wrong_key&limit=500")
        entries = found.json["entries"]
    assert {(entry["username"], entry["address"], entry["outcome"]) for entry in entries} == {
        ("", "127.0.0.1", "refused")
    }
    assert len(entries) <= 20, "ten from each of two processes"
    assert "0" * 40 not in found.text
