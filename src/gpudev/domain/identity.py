"""Who somebody is by the word of AWS, and which of them are let in.

An identity is the account, the role in it and the name of the session. All three together are one person:
the same name in another account, or under another role, is somebody else.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from gpudev.domain.errors import Defect, NotAllowed

_ARN_PARTS = 6
_NOT_IN_A_USERNAME = re.compile(r"[^A-Za-z0-9._-]")
_IDENTITY_CENTER_ROLE = re.compile(r"AWSReservedSSO_(?P<permission_set>.+)_[0-9a-f]{16}")


@dataclass(frozen=True, slots=True)
class Identity:
    arn: str
    account: str
    role: str
    """Empty for an identity that is not a role, such as an IAM user."""
    name: str
    """As AWS spells it; `username` is what we call this person."""

    @property
    def username(self) -> str:
        return _NOT_IN_A_USERNAME.sub("-", self.name)


@dataclass(frozen=True, slots=True)
class AccessPolicy:
    """Whom to let in."""

    accounts: frozenset[str]
    role: str
    """The name of a role, or of a permission set of IAM Identity Center."""

    def check(self, identity: Identity) -> None:
        if identity.account not in self.accounts:
            raise NotAllowed(
                f"{identity.arn} is of AWS account {identity.account}, which may not log in here.",
                hint="Log in with a profile of an account that may; see: aws sts get-caller-identity",
                code="account_not_allowed",
            )
        if not self._has_role(identity):
            raise NotAllowed(
                f"{identity.arn} does not have the role {self.role}.",
                hint=f"Log in with a profile that has the role {self.role}.",
                code="role_not_allowed",
            )

    def _has_role(self, identity: Identity) -> bool:
        """Identity Center calls the roles that it makes `AWSReservedSSO_<permission set>_<16 hex digits>`."""
        made = _IDENTITY_CENTER_ROLE.fullmatch(identity.role)
        return identity.role == self.role or (made is not None and made["permission_set"] == self.role)


def read_arn(arn: str) -> Identity:
    """What an ARN says: `arn:aws:sts::123456789012:assumed-role/SomeRole/ada`."""
    parts = arn.split(":", _ARN_PARTS - 1)
    if len(parts) != _ARN_PARTS or parts[0] != "arn":
        raise Defect(f'AWS gave "{arn}" as an identity, which is no ARN.')
    account, (kind, *segments) = parts[4], parts[5].split("/")
    return Identity(arn, account, _role_in(kind, segments), segments[-1] if segments else kind)


def _role_in(kind: str, segments: list[str]) -> str:
    match kind, segments:
        case "assumed-role", [role, _session, *_]:
            return role
        case "role", [*_, role]:
            return role
        case _:
            return ""
