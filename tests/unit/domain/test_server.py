"""The phase of a whole server follows from the phases of its members, whatever backend shows them."""

from __future__ import annotations

from itertools import permutations, product

import pytest

from gpudev.domain.server import ServerPhase, derive_phase
from tests.support.domain_values import ADDRESS, make_member, make_server
from tests.support.words import words_of

TRIPLES = list(product(ServerPhase, repeat=3))


@pytest.mark.parametrize("phases", TRIPLES, ids=", ".join)
def test_phase_of_the_whole(phases: tuple[ServerPhase, ...]) -> None:
    whole = derive_phase(phases)
    assert (whole is ServerPhase.FAILED) == (ServerPhase.FAILED in phases)
    if ServerPhase.FAILED not in phases:
        assert (whole is ServerPhase.UNPLACEABLE) == (ServerPhase.UNPLACEABLE in phases)
    for shared in (ServerPhase.READY, ServerPhase.STOPPING):
        assert (whole is shared) == (set(phases) == {shared})
    assert {derive_phase(order) for order in permutations(phases)} == {whole}


@pytest.mark.parametrize("phase", ServerPhase, ids=str)
def test_server_of_one_member_is_as_its_member_is(phase: ServerPhase) -> None:
    server = make_server(phase=phase, detail="Words.")
    assert (server.phase, words_of(server.detail), server.nodes) == (phase, "Words.", ("a",))


def test_address_of_a_gang_is_that_of_rank_0() -> None:
    server = make_server(members=(make_member(0, node="a"), make_member(1, node="b", address=None)))
    assert (server.address, server.nodes) == (ADDRESS, ("a", "b"))


def test_words_are_those_of_a_member_that_decides_and_in_a_gang_it_is_named() -> None:
    members = (
        make_member(0, ServerPhase.STARTING, node="a", detail="On its way."),
        make_member(1, ServerPhase.FAILED, node="b", detail="It broke."),
        make_member(2, ServerPhase.FAILED, node="c", detail="It broke, too."),
    )
    assert words_of(make_server(members=members).detail) == "gpu-dev-00000001-1 on b: It broke."


def test_gang_of_which_one_member_is_left_still_names_it() -> None:
    member = make_member(1, ServerPhase.FAILED, node="b", detail="It broke.")
    assert words_of(make_server(members=(member,)).detail).startswith("gpu-dev-00000001-1 on b")


def test_ready_server_has_nothing_to_say() -> None:
    assert words_of(make_server(members=(make_member(0), make_member(1, node="b"))).detail) == ""
