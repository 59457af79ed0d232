"""Ready addresses: each server gets one of those that are free, and passes for other types choose others."""

from __future__ import annotations

from gpudev.domain.plans.admission import choose_port_slot
from tests.support.domain_values import make_id


def test_a_request_gets_one_of_the_ready_addresses() -> None:
    free = ("slot-a", "slot-b", "slot-c")
    assert {choose_port_slot(free, make_id(number)) for number in range(3)} == set(free)


def test_without_a_ready_address_there_is_none() -> None:
    assert choose_port_slot((), make_id(1)) == ""
