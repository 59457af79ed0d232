"""Which binding holds, and which standing at GitHub is good enough."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from gpudev.domain.errors import NotAllowed, ProofNeeded
from gpudev.domain.github import Binding, GitHubPolicy, Membership, Standing, namespace_of

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
DAY = timedelta(days=1)
EVERYTHING = GitHubPolicy("acme", "gpu", "acme/models")
GOOD = Standing(Membership.ACTIVE, Membership.ACTIVE, can_push=True)


def test_a_binding_holds_for_the_life_of_its_proof() -> None:
    binding = Binding("ada", NOON)
    policy = GitHubPolicy("acme", proof_life=DAY)
    assert policy.check_binding("ada-x", binding, NOON + DAY - timedelta(seconds=1)) == binding
    with pytest.raises(ProofNeeded) as caught:
        policy.check_binding("ada-x", binding, NOON + DAY)
    assert caught.value.code == "github_proof_expired"


def test_without_a_binding_a_proof_is_needed() -> None:
    with pytest.raises(ProofNeeded, match="ada-x") as caught:
        EVERYTHING.check_binding("ada-x", None, NOON)
    assert caught.value.code == "github_proof_needed"
    assert "--github-user" in caught.value.hint


@pytest.mark.parametrize(
    "standing,code",
    [
        (Standing(Membership.NONE, Membership.ACTIVE, can_push=True), "github_not_a_member"),
        (Standing(Membership.PENDING, Membership.ACTIVE, can_push=True), "github_invitation_open"),
        (Standing(Membership.ACTIVE, Membership.NONE, can_push=True), "github_not_in_team"),
        (Standing(Membership.ACTIVE, Membership.PENDING, can_push=True), "github_not_in_team"),
        (Standing(Membership.ACTIVE, Membership.ACTIVE, can_push=False), "github_no_push_access"),
    ],
)
def test_each_thing_that_is_missing_is_named(standing: Standing, code: str) -> None:
    with pytest.raises(NotAllowed, match="ada") as caught:
        EVERYTHING.check_standing("ada", standing)
    assert caught.value.code == code
    assert caught.value.hint


@pytest.mark.parametrize(
    "policy,standing",
    [
        (EVERYTHING, GOOD),
        (GitHubPolicy("acme"), Standing(Membership.ACTIVE)),
        (GitHubPolicy(repository="acme/models"), Standing(can_push=True)),
        (GitHubPolicy("acme", "gpu"), Standing(Membership.ACTIVE, Membership.ACTIVE)),
    ],
)
def test_what_is_not_asked_for_does_not_matter(policy: GitHubPolicy, standing: Standing) -> None:
    policy.check_standing("ada", standing)


def test_a_signature_is_for_one_server() -> None:
    assert namespace_of("gpu.example.org") == "gpu-dev@gpu.example.org"
