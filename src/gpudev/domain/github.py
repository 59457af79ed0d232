"""Who somebody is at GitHub, and which of them are let in: an optional check on top of a login by AWS.

A *binding* says which GitHub user one of our users is. It is made by a signature with one of that GitHub
user's SSH keys and holds for a while. What that GitHub user may do there, their *standing*, is looked at
again with every login.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from gpudev.domain.errors import NotAllowed, ProofNeeded

CHALLENGE_LIFE = timedelta(minutes=5)


class Membership(StrEnum):
    ACTIVE = "active"
    PENDING = "pending"
    """Invited, and the invitation is not accepted yet."""
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Binding:
    """Which GitHub user one of our users is, and when that was proved."""

    github_user: str
    proved_at: datetime


@dataclass(frozen=True, slots=True)
class Standing:
    """What GitHub says of one of its users. Only what the policy asks for is filled in."""

    organisation: Membership = Membership.NONE
    team: Membership = Membership.NONE
    can_push: bool = False


@dataclass(frozen=True, slots=True)
class GitHubPolicy:
    """Whom to let in; what is empty is not asked for."""

    organisation: str = ""
    team: str = ""
    """A team of the organisation."""
    repository: str = ""
    """OWNER/NAME; one must have the right to push to it."""
    proof_life: timedelta = timedelta(days=30)

    def check_binding(self, username: str, binding: Binding | None, now: datetime) -> Binding:
        """The binding, if it holds."""
        if binding is None:
            raise ProofNeeded("github_proof_needed", username=username, code="github_proof_needed")
        if now >= binding.proved_at + self.proof_life:
            raise ProofNeeded(
                "github_proof_expired",
                username=username,
                github_user=binding.github_user,
                code="github_proof_expired",
            )
        return binding

    def check_standing(self, github_user: str, standing: Standing) -> None:
        if self.organisation:
            _check_organisation(github_user, self.organisation, standing.organisation)
        if self.team and standing.team is not Membership.ACTIVE:
            raise NotAllowed(
                "github_not_in_team",
                github_user=github_user,
                team=self.team,
                organisation=self.organisation,
                code="github_not_in_team",
            )
        if self.repository and not standing.can_push:
            raise NotAllowed(
                "github_no_push_access",
                github_user=github_user,
                repository=self.repository,
                code="github_no_push_access",
            )


def _check_organisation(github_user: str, organisation: str, membership: Membership) -> None:
    if membership is Membership.PENDING:
        raise NotAllowed(
            "github_invitation_open",
            github_user=github_user,
            organisation=organisation,
            code="github_invitation_open",
        )
    if membership is not Membership.ACTIVE:
        raise NotAllowed(
            "github_not_a_member",
            github_user=github_user,
            organisation=organisation,
            code="github_not_a_member",
        )


def namespace_of(server: str) -> str:
    """What a signature for the server of this name is made for; see `ssh-keygen -Y sign -n`."""
    return f"gpu-dev@{server}"
