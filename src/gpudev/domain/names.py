"""Identifiers and names: what they look like and how one is made from another."""

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

_NAME = re.compile(r"[a-z0-9-]{1,40}")
_HEXADECIMAL = re.compile(r"[0-9a-f]+")
_UUID_SHAPE = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx"
_ENVIRONMENT_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

MAX_ENVIRONMENT = 32_768

RESERVED_ENVIRONMENT_PREFIXES = ("NVIDIA_", "GPU_DEV_")
RESERVED_ENVIRONMENT_NAMES = frozenset({"CUDA_VISIBLE_DEVICES"})


def id8(reservation_id: ReservationId) -> str:
    return reservation_id[:ID8_LENGTH]


def server_name(reservation_id: ReservationId) -> str:
    """What the dev server is called everywhere: the pod, the SSH host alias, the files."""
    return f"gpu-dev-{id8(reservation_id)}"


def default_reservation_name(gpu_type: str, reservation_id: ReservationId) -> str:
    return f"{gpu_type}-{id8(reservation_id)}"


def is_id_prefix(text: str) -> bool:
    return len(text) >= MIN_PREFIX_LENGTH and _starts_a_uuid(text)


def check_reservation_name(name: str) -> str:
    """Refuse what is not a name, and what would read as an id; `a100-7f3a91c2` does not."""
    if _NAME.fullmatch(name) is None:
        raise Invalid(
            f'"{name}" is not a reservation name.',
            hint="Use 1 to 40 lower-case letters, digits and dashes, for example --name my-run.",
            code="bad_name",
        )
    if _HEXADECIMAL.fullmatch(name) is not None or _starts_a_uuid(name):
        raise Invalid(
            f'The name "{name}" could be taken for a reservation id.',
            hint="Add a letter beyond f, for example --name my-run.",
            code="bad_name",
        )
    return name


def check_environment(variables: Mapping[str, str]) -> Mapping[str, str]:
    for name, value in variables.items():
        check_environment_name(name)
        if "\0" in value:
            raise Invalid(
                f"The value of the environment variable {name} has a zero byte in it.",
                hint="Leave it out; encode binary data as text, for example in base64.",
                code="bad_env_var",
            )
    if sum(len(name) + len(value) for name, value in variables.items()) > MAX_ENVIRONMENT:
        raise Invalid(
            "The environment variables are too long.",
            hint=f"All of them together may have {MAX_ENVIRONMENT} characters; put long ones into a file.",
            code="bad_env_var",
        )
    return variables


def check_environment_name(name: str) -> str:
    if _ENVIRONMENT_NAME.fullmatch(name) is None:
        raise Invalid(
            f'"{name}" is not a name for an environment variable.',
            hint="Use letters, digits and underscores, not starting with a digit.",
            code="bad_env_var",
        )
    if name in RESERVED_ENVIRONMENT_NAMES or name.startswith(RESERVED_ENVIRONMENT_PREFIXES):
        raise Invalid(
            f"The environment variable {name} is set by gpu-dev and cannot be given.",
            hint="NVIDIA_*, GPU_DEV_* and CUDA_VISIBLE_DEVICES are reserved; leave it out.",
            code="reserved_env_var",
        )
    return name


def _starts_a_uuid(text: str) -> bool:
    """Dashes exactly where a UUID has them, lower-case hexadecimal everywhere else."""
    return len(text) <= len(_UUID_SHAPE) and all(
        character == "-" if shape == "-" else _HEXADECIMAL.fullmatch(character)
        for character, shape in zip(text, _UUID_SHAPE, strict=False)
    )
