"""Reading keys from a server that speaks as GitHub does, and from one that does not."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from gpudev.adapters.github.directory import GitHubKeys
from gpudev.domain.errors import KeysUnavailable
from tests.support.github import FakeGitHub, running_github
from tests.support.reservations import PUBLIC_KEY

pytestmark = pytest.mark.anyio

BODY = "AAAAC3NzaC1lZDI1NTE5AAAAIHwpPRlAXmC0Y9QJ0c1W3mVqTzj0E2D8xw1k7v5bWn0q"
KEYS = [
    f"ssh-ed25519 {BODY}",
    f"ssh-rsa {BODY}",
    f"ecdsa-sha2-nistp256 {BODY}",
    f"sk-ssh-ed25519@openssh.com {BODY}",
    f"sk-ecdsa-sha2-nistp256@openssh.com {BODY}",
]


@pytest.fixture
def github() -> Iterator[FakeGitHub]:
    with running_github() as running:
        yield running


async def test_every_kind_that_a_dev_server_takes_is_read(github: FakeGitHub) -> None:
    github.keys["ada"] = [*KEYS, f"ssh-dss {BODY}", "", "words"]
    assert await GitHubKeys(github.url, 5).list_keys("ada") == tuple(KEYS)
    assert github.asked == ["/ada.keys"]


async def test_a_user_who_is_not_there_has_no_keys(github: FakeGitHub) -> None:
    assert await GitHubKeys(f"{github.url}/", 5).list_keys("nobody") == ()


@pytest.mark.parametrize(
    "change",
    [{"status": 500}, {"status": 429}, {"content_type": "text/html"}],
    ids=["broken", "too-many-requests", "page-of-a-proxy"],
)
async def test_an_answer_that_says_nothing_is_not_read_as_no_keys(
    github: FakeGitHub, change: dict[str, Any]
) -> None:
    github.keys["ada"] = [PUBLIC_KEY]
    for name, value in change.items():
        setattr(github, name, value)
    with pytest.raises(KeysUnavailable):
        await GitHubKeys(github.url, 5).list_keys("ada")


async def test_silence_ends_after_the_time_limit(github: FakeGitHub) -> None:
    github.hangs = threading.Event()
    try:
        with pytest.raises(KeysUnavailable):
            await GitHubKeys(github.url, 0.05).list_keys("ada")
    finally:
        github.hangs.set()


async def test_nobody_there_at_all(github: FakeGitHub) -> None:
    with pytest.raises(KeysUnavailable, match="ada"):
        await GitHubKeys("http://127.0.0.1:1", 5).list_keys("ada")
