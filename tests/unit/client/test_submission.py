"""When a submission goes on looking for its dev server, and when it gives up."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from gpudev.client import codec, submission
from gpudev.client.dev_server import Box
from gpudev.client.errors import CommandFailed, ConnectionLost, NotActive, Unreachable
from gpudev.client.session import Client, connect
from gpudev.client.submission import Submission
from gpudev.wire.jobs import JobDetail
from tests.support.fake_api import FakeApi, Reply
from tests.support.wire_values import ACTIVE, FAILED, JOB_ID
from tests.unit.client.conftest import Home

LATER = datetime.now(UTC) + timedelta(hours=1)
SILENT = Reply(is_dropped=True)


class Losing:
    """An attempt that loses its connection so many times."""

    def __init__(self, times: int) -> None:
        self.left = times

    def __call__(self) -> str:
        if self.left == 0:
            return "done"
        self.left -= 1
        raise ConnectionLost("The SSH connection was lost.")


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(submission, "PAUSES", (0.0,))


@pytest.fixture
def client(home: Home) -> Iterator[Client]:
    with connect(home.surroundings) as client:
        yield client


def submit(client: Client, told: list[str], job: JobDetail = ACTIVE) -> Submission:
    return Submission(Box(client, job), told.append)


def test_a_connection_is_made_again_while_the_reservation_is_active(api: FakeApi, client: Client) -> None:
    api.on("GET", f"/v1/jobs/{JOB_ID}", Reply(body=codec.encode(ACTIVE)))
    told: list[str] = []
    assert submit(client, told)._insist(Losing(3)) == "done"
    assert told == ["The SSH connection was lost. Connecting again."] * 3


def test_the_end_of_the_reservation_ends_it_with_the_reason(api: FakeApi, client: Client) -> None:
    api.on("GET", f"/v1/jobs/{JOB_ID}", Reply(body=codec.encode(FAILED)))
    with pytest.raises(NotActive, match=f"7f3a91c2 is failed: {FAILED.failure_reason}"):
        submit(client, [])._insist(Losing(1))


def test_without_a_network_it_waits_for_as_long_as_the_reservation_lasts(
    api: FakeApi, client: Client
) -> None:
    api.on("GET", f"/v1/jobs/{JOB_ID}", SILENT)
    lasting = submit(client, [], replace(ACTIVE, expires_at=LATER))
    assert lasting._insist(Losing(1)) == "done"
    over = submit(client, [], replace(ACTIVE, expires_at=datetime.now(UTC) - timedelta(hours=1)))
    with pytest.raises(Unreachable):
        over._insist(Losing(1))


def test_what_fails_there_is_not_tried_again(client: Client) -> None:
    def fail() -> None:
        raise CommandFailed("tar failed: No space left on device", exit_code=2)

    with pytest.raises(CommandFailed, match="No space left"):
        submit(client, [])._insist(fail)
