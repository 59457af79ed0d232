"""Asking a server that speaks as GitHub's REST API does, and one that does not want to."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from datetime import timedelta

import pytest

from gpudev.adapters.github.directory import GitHubApi, RestDirectory
from gpudev.domain.errors import IdentityUnavailable
from gpudev.domain.github import GitHubPolicy, Membership, Standing
from tests.support.github import FakeGitHub, running_github

pytestmark = pytest.mark.anyio

POLICY = GitHubPolicy("acme", "gpu", "acme/models")


@pytest.fixture
def github() -> Iterator[FakeGitHub]:
    with running_github() as running:
        yield running


def directory(github: FakeGitHub, timeout_seconds: float = 5.0) -> RestDirectory:
    return RestDirectory(GitHubApi(github.api_url, "the-token", timeout_seconds))


async def test_everything_that_the_policy_names_is_asked(github: FakeGitHub) -> None:
    github.add_member("acme", "ada")
    github.add_member("acme", "ada", team="gpu", state="pending")
    github.permit("acme/models", "ada", "write")
    standing = await directory(github).read_standing("ada", POLICY)
    assert standing == Standing(Membership.ACTIVE, Membership.PENDING, can_push=True)
    assert github.tokens == {"Bearer the-token"}


async def test_nothing_else_is_asked(github: FakeGitHub) -> None:
    github.add_member("acme", "ada")
    await directory(github).read_standing("ada", GitHubPolicy("acme"))
    assert github.asked == ["/api/v3/orgs/acme/memberships/ada"]


async def test_who_is_not_found_is_nothing(github: FakeGitHub) -> None:
    assert await directory(github).read_standing("nobody", POLICY) == Standing()


@pytest.mark.parametrize(
    "permission,can_push",
    [
        ("admin", True),
        ("maintain", True),
        ("write", True),
        ("triage", False),
        ("read", False),
        ("none", False),
    ],
)
async def test_who_may_push(github: FakeGitHub, permission: str, *, can_push: bool) -> None:
    github.permit("acme/models", "ada", permission)
    standing = await directory(github).read_standing("ada", GitHubPolicy(repository="acme/models"))
    assert standing.can_push is can_push


@pytest.mark.parametrize("status", [301, 401, 403, 500, 502])
async def test_an_answer_that_is_not_about_the_user_is_no_refusal(github: FakeGitHub, status: int) -> None:
    github.api_status = status
    github.api_headers = {"Location": f"{github.url}/elsewhere"}
    with pytest.raises(IdentityUnavailable, match=str(status)):
        await directory(github).read_standing("ada", GitHubPolicy("acme"))
    assert len(github.asked) == 1


@pytest.mark.parametrize(
    "status,headers,seconds",
    [
        (429, {"Retry-After": "7"}, 7),
        (403, {"Retry-After": "7"}, 7),
        (429, {}, 60),
        (403, {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "1"}, 1),
        (403, {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": str(int(time.time()) + 10**6)}, 3600),
    ],
    ids=["429", "403", "without-a-time", "reset-is-past", "reset-is-far"],
)
async def test_who_asks_too_often_stops_asking(
    github: FakeGitHub, status: int, headers: dict[str, str], seconds: int
) -> None:
    github.api_status, github.api_headers = status, headers
    asking = directory(github)
    with pytest.raises(IdentityUnavailable) as caught:
        await asking.read_standing("ada", GitHubPolicy("acme"))
    assert caught.value.retry_after == timedelta(seconds=seconds)
    with pytest.raises(IdentityUnavailable) as caught:
        await asking.read_standing("ada", GitHubPolicy("acme"))
    assert caught.value.retry_after is not None
    assert caught.value.retry_after <= timedelta(seconds=seconds)
    assert len(github.asked) == 1


@pytest.mark.parametrize("fact", [["a", "list"], "text", 1])
async def test_an_answer_of_another_shape_is_no_answer(github: FakeGitHub, fact: object) -> None:
    github.facts["/orgs/acme/memberships/ada"] = fact
    with pytest.raises(IdentityUnavailable):
        await directory(github).read_standing("ada", GitHubPolicy("acme"))


async def test_silence_ends_after_the_time_limit(github: FakeGitHub) -> None:
    github.hangs = threading.Event()
    try:
        with pytest.raises(IdentityUnavailable):
            await directory(github, 0.05).read_standing("ada", GitHubPolicy("acme"))
    finally:
        github.hangs.set()


async def test_nobody_there_at_all() -> None:
    asking = RestDirectory(GitHubApi("http://127.0.0.1:1", "the-token"))
    with pytest.raises(IdentityUnavailable, match="cannot be asked"):
        await asking.read_standing("ada", POLICY)
