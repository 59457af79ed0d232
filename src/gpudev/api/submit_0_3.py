"""What a client of version 0.3 asks for.

Those clients are in the field and stay as they are. What they always send is taken or passed over; what
would give the user something else than asked for is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime

from gpudev.app.identity import User
from gpudev.app.reservations import ReserveRequest, WantedDisk
from gpudev.domain.errors import Invalid
from gpudev.domain.expiry import duration_of
from gpudev.domain.names import parse_reservation_id
from gpudev.domain.reservation import Settings, Spec
from gpudev.texts.fact import Fact, fact
from gpudev.wire.jobs import SubmitRequest03

NO_CUSTOM_IMAGE = "pytorch/pytorch:2.1.0-cuda12.1-cudnn8-runtime"
"""What it sends when its user has not asked for an image."""

DEFAULT_TYPE, DEFAULT_COUNT = "a100", "1"
"""What the server of those clients took a body for that says neither."""

MEANT_FOR_US = frozenset(
    {
        "GPU_TYPE",
        "GPU_COUNT",
        "RESERVATION_ID",
        "USER_ID",
        "GITHUB_USER",
        "POD_NAME",
        "JUPYTER_ENABLED",
        "RECREATE_ENV",
        "PRESERVE_ENTRYPOINT",
    }
)
"""Its other variables are for the dev server."""

_PASSED_OVER = {
    "JUPYTER_ENABLED": fact("jupyter_not_started"),
    "RECREATE_ENV": fact("environment_not_recreated"),
    "PRESERVE_ENTRYPOINT": fact("entry_point_not_preserved"),
}
"""Switches that can be passed over, since the dev server is of use without them; the user is told."""


_PART_OF_SEVERAL = re.compile(r" - Node (?P<number>[0-9]{1,3})/(?P<count>[0-9]{1,3})\s*\Z")
"""How those clients name the parts of a request for several nodes."""


def own_image(image: str | None) -> str:
    """The image that the user asked for; empty if none was."""
    return "" if image is None or image == NO_CUSTOM_IMAGE else image


def read_0_3(
    body: SubmitRequest03, user: User, now: datetime, backend_fields: frozenset[str] = frozenset()
) -> ReserveRequest:
    _refuse_what_is_not_there(body, backend_fields)
    asked = body.env_vars
    wanted_id = asked.get("RESERVATION_ID", "")
    return ReserveRequest(
        spec=Spec(
            user_id=user.user_id,
            username=user.username,
            name="",
            gpu_type=asked.get("GPU_TYPE", DEFAULT_TYPE),
            gpu_count=_read_count(asked.get("GPU_COUNT", DEFAULT_COUNT)),
            duration=duration_of(body.duration_hours),
            created_at=now,
            warnings=tuple(_list_warnings(asked)),
        ),
        wished_name=asked.get("POD_NAME", ""),
        reservation_id=parse_reservation_id(wanted_id) if wanted_id else None,
        settings=Settings(
            image=own_image(body.image),
            env_vars={name: value for name, value in asked.items() if name not in MEANT_FOR_US},
            github_user=asked.get("GITHUB_USER", ""),
        ),
        disk=WantedDisk(body.disk_name or "", body.disk_size_gb),
    )


def _refuse_what_is_not_there(body: SubmitRequest03, backend_fields: frozenset[str]) -> None:
    if own_image(body.image) and "image" not in backend_fields:
        raise Invalid("image_not_supported", code="not_supported_yet")
    if body.command:
        raise Invalid("command_not_supported", code="not_supported_yet")


def _read_count(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise Invalid("gpu_count_is_not_a_number", text=text[:20], code="bad_gpu_count") from None


def _list_warnings(asked: dict[str, str]) -> Iterator[Fact]:
    if part := _PART_OF_SEVERAL.search(asked.get("POD_NAME", "")):
        yield fact("node_reserved_on_its_own", number=part["number"], count=part["count"])
    for name, warning in _PASSED_OVER.items():
        if asked.get(name, "").lower() == "true":
            yield warning
