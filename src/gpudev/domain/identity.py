"""Who somebody is by the word of AWS, and which of them are let in.

An identity is the account, the role in it and the name of the session. All three together are one person:
the same name in another account, or under another role, is somebody else.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from gpudev.domain.errors import Defect, Invalid, NotAllowed

_ARN_PARTS = 6
_NOT_IN_A_USERNAME = re.compile(r"[^A-Za-z0-9._-]")
_ARN_OF_A_PERSON = re.compile(
    r"arn:[a-z-]+:(sts::[0-9]{12}:assumed-role/[^/:]+/[^/:]+|iam::[0-9]{12}:user/([^/:]+/)*[^/:]+)"
)
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

    @property
    def text(self) -> str:
        """The person as one text, as the database writes it, too. Admins are named by it."""
        return f"aws:{self.account}/{self.role}/{self.name}"


@dataclass(frozen=True, slots=True)
class AccessPolicy:
    """Whom to let in."""

    accounts: frozenset[str]
    role: str
    """The name of a role, or of a permission set of IAM Identity Center."""

    def check(self, identity: Identity) -> None:
        if identity.account not in self.accounts:
            raise NotAllowed(
                "account_not_allowed", arn=identity.arn, account=identity.account, code="account_not_allowed"
            )
        if not self._has_role(identity):
            raise NotAllowed("role_not_allowed", arn=identity.arn, role=self.role, code="role_not_allowed")

    def _has_role(self, identity: Identity) -> bool:
        """Identity Center calls the roles that it makes `AWSReservedSSO_<permission set>_<16 hex digits>`."""
        made = _IDENTITY_CENTER_ROLE.fullmatch(identity.role)
        return identity.role == self.role or (made is not None and made["permission_set"] == self.role)


def read_arn(arn: str) -> Identity:
    """What an ARN says: `arn:aws:sts::123456789012:assumed-role/SomeRole/ada`."""
    parts = arn.split(":", _ARN_PARTS - 1)
    if len(parts) != _ARN_PARTS or parts[0] != "arn":
        raise Defect("identity_is_no_arn", text=arn)
    account, (kind, *segments) = parts[4], parts[5].split("/")
    return Identity(arn, account, _role_in(kind, segments), segments[-1] if segments else kind)


def local_identity(username: str) -> str:
    """Of somebody whom no provider vouches for: an account of the server's own machine."""
    return f"local:{username}"


def read_admin(text: str) -> str:
    """The identity that a setting names: an ARN of one person, or `local:NAME`.

    A bare username is refused: whoever comes first from any allowed account has it.
    """
    if text.startswith("local:") and len(text) > len("local:"):
        return text
    if _ARN_OF_A_PERSON.fullmatch(text):
        return read_arn(text).text
    raise Invalid("bad_admin", text=text, code="bad_admin")


def _role_in(kind: str, segments: list[str]) -> str:
    match kind, segments:
        case "assumed-role", [role, _session, *_]:
            return role
        case "role", [*_, role]:
            return role
        case _:
            return ""
