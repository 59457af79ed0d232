"""What a body of a 0.3 client asks for, without a server."""

from __future__ import annotations

from gpudev.api.submit_0_3 import read_0_3
from gpudev.domain.names import UserId
from gpudev.ports.users import User
from gpudev.wire.jobs import SubmitRequest03
from tests.support.reservations import NOON

ADA = User(UserId(1), "ada")


def test_a_body_that_says_neither_type_nor_count_asks_for_one_a100() -> None:
    asked = read_0_3(SubmitRequest03(duration_hours=1), ADA, NOON).spec
    assert (asked.gpu_type, asked.gpu_count) == ("a100", 1)


def test_what_it_says_is_taken() -> None:
    body = SubmitRequest03(duration_hours=1, env_vars={"GPU_TYPE": "t4", "GPU_COUNT": "2"})
    asked = read_0_3(body, ADA, NOON).spec
    assert (asked.gpu_type, asked.gpu_count, asked.warnings) == ("t4", 2, ())
