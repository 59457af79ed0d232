"""Every error has a sentence, a stable code of its own, and its place in the one tree."""

from __future__ import annotations

import inspect

import pytest

from gpudev.domain import errors
from gpudev.domain.errors import Defect, GpuDevError, Rejected, Stale, Unavailable

ALL = [
    kind
    for _, kind in inspect.getmembers(errors, inspect.isclass)
    if issubclass(kind, GpuDevError) and kind is not GpuDevError
]


@pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.__name__)
def test_error_is_in_one_branch_and_in_the_drawing(kind: type[GpuDevError]) -> None:
    assert sum(issubclass(kind, branch) for branch in (Rejected, Unavailable, Stale, Defect)) == 1
    assert f"── {kind.__name__}" in (errors.__doc__ or "")


def test_codes_are_unique() -> None:
    codes = [kind.default_code for kind in ALL]
    assert len(set(codes)) == len(codes)


def test_error_carries_message_hint_and_code() -> None:
    error = Rejected("disk_is_deleted", name="scratch", code="special")
    message = 'Disk "scratch" is deleted.'
    assert (str(error), error.message) == (message, message)
    assert (error.hint, error.code) == ("Have it back with: gpu-dev disk restore scratch", "special")
    assert Rejected("words", words="No.").code == "rejected"
