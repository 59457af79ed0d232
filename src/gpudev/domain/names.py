"""Identifiers and names: what they look like and how one is made from another.

Text that a dev server or another program said is made fit to be stored and shown: PostgreSQL takes no NUL and
no lone surrogate, terminals obey control characters, nobody reads megabytes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NewType

from gpudev.domain.errors import Invalid

ReservationId = NewType("ReservationId", str)
"""A UUID in its canonical, lower-case form."""

UserId = NewType("UserId", int)
OperationId = NewType("OperationId", str)
NodeName = NewType("NodeName", str)

ID8_LENGTH = 8
"""Pods, files and hosts are named by this many characters of the id, so they are unique for ever."""

MIN_PREFIX_LENGTH = 4

MAX_NAME_LENGTH = 40

RESERVED_NAMES = frozenset({"preview", "submit"})
"""Paths of the API: a reservation of such a name could not be looked up by it."""

_NAME = re.compile(r"[a-z0-9-]{1,40}")
_NOT_IN_A_NAME = re.compile(r"[^a-z0-9]+")
_GITHUB_USER = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_-]{0,62}[A-Za-z0-9])?")
_CLIENT_VERSION = re.compile(r"[A-Za-z0-9._+-]{0,64}")
_IMAGE_PART = "[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
_IMAGE = re.compile(
    rf"(?:[A-Za-z0-9.-]+(?::[0-9]+)?/)?{_IMAGE_PART}(?:/{_IMAGE_PART})*"
    r"(?::[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?(?:@sha256:[0-9a-f]{64})?"
)
MAX_IMAGE_LENGTH = 400
_HEXADECIMAL = re.compile(r"[0-9a-f]+")
_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_FIRST_ID = "00000000-0000-0000-0000-000000000000"
_LAST_ID = "ffffffff-ffff-ffff-ffff-ffffffffffff"
_ENVIRONMENT_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

MAX_ENVIRONMENT = 32_768

RESERVED_ENVIRONMENT_PREFIXES = ("NVIDIA_", "GPU_DEV_")
RESERVED_ENVIRONMENT_NAMES = frozenset({"CUDA_VISIBLE_DEVICES"})


def id8(reservation_id: ReservationId) -> str:
    return reservation_id[:ID8_LENGTH]


def server_name(reservation_id: ReservationId) -> str:
    """What the dev server is called everywhere: the pod, the SSH host alias, the files."""
    return f"gpu-dev-{id8(reservation_id)}"


def member_name(reservation_id: ReservationId, rank: int) -> str:
    """What one node's part of a dev server is called: rank 0 as the whole, the others with their rank."""
    return f"{server_name(reservation_id)}-{rank}" if rank else server_name(reservation_id)


def default_reservation_name(gpu_type: str, reservation_id: ReservationId) -> str:
    return f"{gpu_type}-{id8(reservation_id)}"


def is_id_prefix(text: str) -> bool:
    return len(text) >= MIN_PREFIX_LENGTH and _starts_a_uuid(text)


def find_id_range(text: str) -> tuple[ReservationId, ReservationId] | None:
    """The first and the last id that begin with `text`; None if none could."""
    if not is_id_prefix(text):
        return None
    size = len(text)
    return ReservationId(text + _FIRST_ID[size:]), ReservationId(text + _LAST_ID[size:])


def check_reservation_name(name: str) -> str:
    """Refuse what is not a name, and what would read as an id; `a100-7f3a91c2` does not."""
    if _NAME.fullmatch(name) is None:
        raise Invalid("bad_reservation_name", name=name, code="bad_name")
    if name in RESERVED_NAMES:
        raise Invalid("reserved_reservation_name", name=name, code="bad_name")
    if _could_be_an_id(name):
        raise Invalid("reservation_name_like_an_id", name=name, code="bad_name")
    return name


def normalise_name(text: str) -> str:
    """The nearest thing to a reservation name; empty if nothing of the text can be in one."""
    return _NOT_IN_A_NAME.sub("-", text.lower()).strip("-")[:MAX_NAME_LENGTH].rstrip("-")


def suffix_name(name: str, reservation_id: ReservationId) -> str:
    """A name that no other reservation has, and that reads neither as an id nor as the start of one."""
    distinct = f"run-{name}" if _could_be_an_id(name) else name
    kept = distinct[: MAX_NAME_LENGTH - ID8_LENGTH - 1].rstrip("-")
    return f"{kept}-{id8(reservation_id)}"


def is_reservation_name(name: str) -> bool:
    return _NAME.fullmatch(name) is not None and name not in RESERVED_NAMES and not _could_be_an_id(name)


def parse_reservation_id(text: str) -> ReservationId:
    """The canonical form of a UUID that a client made."""
    lowered = text.lower()
    if _ID.fullmatch(lowered) is None:
        raise Invalid("bad_reservation_id", text=text[:40], code="bad_reservation_id")
    return ReservationId(lowered)


def check_github_user(name: str) -> str:
    """The name in lower case: GitHub does not tell cases apart."""
    if _GITHUB_USER.fullmatch(name) is None:
        raise Invalid("bad_github_user", name=name[:60], code="bad_github_user")
    return name.lower()


def check_client_version(version: str) -> str:
    if _CLIENT_VERSION.fullmatch(version) is None:
        raise Invalid("bad_client_version", code="bad_client_version")
    return version


def check_image(name: str) -> str:
    """Refuse what no registry could have under that name; empty is no image of one's own."""
    if name and (len(name) > MAX_IMAGE_LENGTH or _IMAGE.fullmatch(name) is None):
        raise Invalid("bad_image", name=name[:60], code="bad_image")
    return name


def check_environment(variables: Mapping[str, str]) -> Mapping[str, str]:
    for name, value in variables.items():
        check_environment_name(name)
        if not _is_storable(value):
            raise Invalid("env_value_is_not_text", name=name, code="bad_env_var")
    if sum(len(name) + len(value) for name, value in variables.items()) > MAX_ENVIRONMENT:
        raise Invalid("env_too_long", most=MAX_ENVIRONMENT, code="bad_env_var")
    return variables


def check_environment_name(name: str) -> str:
    if _ENVIRONMENT_NAME.fullmatch(name) is None:
        raise Invalid("bad_env_name", name=name, code="bad_env_var")
    if name in RESERVED_ENVIRONMENT_NAMES or name.startswith(RESERVED_ENVIRONMENT_PREFIXES):
        raise Invalid("reserved_env_name", name=name, code="reserved_env_var")
    return name


def _could_be_an_id(name: str) -> bool:
    return _HEXADECIMAL.fullmatch(name) is not None or _starts_a_uuid(name)


def _is_storable(value: str) -> bool:
    """JSON can say what UTF-8 and PostgreSQL cannot: half a surrogate pair, and a zero byte."""
    return "\0" not in value and not any("\ud800" <= character <= "\udfff" for character in value)


def _starts_a_uuid(text: str) -> bool:
    """Dashes exactly where a UUID has them, lower-case hexadecimal everywhere else."""
    return _ID.fullmatch(text + _FIRST_ID[len(text) :]) is not None


_CUT = "…"


def make_printable(text: str, longest: int) -> str:
    """One line of printable characters: `?` for each other one, and `…` at the end where it was cut."""
    shown = "".join(each if each.isprintable() else "?" for each in text[: longest + 1])
    return shown if len(shown) <= longest else f"{shown[: longest - 1]}{_CUT}"
