"""What is done about a reservation on several nodes."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest

from gpudev.domain.names import NodeName
from gpudev.domain.plans.reservation import plan_reservation
from gpudev.domain.plans.turn import (
    CreateServer,
    DeleteServer,
    Observation,
)
from gpudev.domain.server import Member, ServerPhase
from gpudev.texts.vocabulary import WAITING, EventKind, Reason, Status
from tests.support.domain_values import (
    ADDRESS,
    HOST_KEYS,
    QUAD,
    make_member,
    make_reservation,
    make_server,
)
from tests.support.reservation_plans import (
    PHASES,
    deletions,
    observe,
    only_record,
    records,
)
from tests.support.words import words_of

GANG_NODES = (NodeName("a"), NodeName("b"))


def observe_gang(status: Status, phases: tuple[ServerPhase | None, ...]) -> Observation:
    """A gang of two; a phase of None stands for a member that is not there."""
    members = tuple(
        make_member(rank, phase, node=GANG_NODES[rank], detail="Its words.")
        for rank, phase in enumerate(phases)
        if phase is not None
    )
    reservation = make_reservation(status=status, nodes=GANG_NODES, gpu_count=8)
    return observe(
        status, None, reservation=reservation, server=make_server(members=members) if members else None
    )


GANGS = [
    pytest.param(observe_gang(status, phases), id=f"{status}: {', '.join(str(phase) for phase in phases)}")
    for status, phases in product(Status, product(PHASES, PHASES))
    if status not in WAITING
]


class TestGangs:
    @pytest.mark.parametrize("seen", GANGS)
    def test_it_is_active_only_when_every_member_answers(self, seen: Observation) -> None:
        members = seen.server.members if seen.server else ()
        answers = [member.phase is ServerPhase.READY for member in members]
        became_active = any(
            record.event.kind is EventKind.ACTIVE for record in records(plan_reservation(seen))
        )
        assert became_active == (
            seen.reservation.state.status is Status.PREPARING and len(answers) == 2 and all(answers)
        )

    @pytest.mark.parametrize("phases", list(product(PHASES, PHASES)))
    def test_active_gang_ends_exactly_when_a_member_is_broken_or_gone(
        self, phases: tuple[ServerPhase | None, ...]
    ) -> None:
        seen = observe_gang(Status.ACTIVE, phases)
        is_hurt = None in phases or ServerPhase.FAILED in phases
        assert any(record.after.is_ended for record in records(plan_reservation(seen))) == is_hurt

    @pytest.mark.parametrize("seen", GANGS)
    def test_end_of_a_gang_takes_whatever_is_left_of_it_unless_all_of_it_stops(
        self, seen: Observation
    ) -> None:
        plan = plan_reservation(seen)
        if seen.reservation.is_ended or any(record.after.is_ended for record in records(plan)):
            stops = seen.server is None or seen.server.phase is ServerPhase.STOPPING
            assert len(deletions(plan)) == (0 if stops else 1)

    @pytest.mark.parametrize("seen", GANGS)
    def test_member_that_is_missing_while_it_starts_is_made(self, seen: Observation) -> None:
        made = any(isinstance(action, CreateServer) for action in plan_reservation(seen))
        phases = {member.phase for member in seen.server.members} if seen.server else set()
        can_start = phases <= {ServerPhase.STARTING, ServerPhase.READY}
        is_partial = seen.server is None or len(seen.server.members) < 2
        assert made == (seen.reservation.state.status is Status.PREPARING and is_partial and can_start)

    def test_lost_member_is_named(self) -> None:
        record = only_record(plan_reservation(observe_gang(Status.ACTIVE, (ServerPhase.READY, None))))
        assert record.after.state.reason is Reason.POD_DELETED
        assert words_of(record.after.state.detail).endswith("Gone: gpu-dev-00000001-1 on b.")

    def test_broken_member_is_named_with_its_words(self) -> None:
        seen = observe_gang(Status.ACTIVE, (ServerPhase.READY, ServerPhase.FAILED))
        record = only_record(plan_reservation(seen))
        assert record.after.state.reason is Reason.SERVER_FAILED
        assert words_of(record.after.state.detail).endswith("gpu-dev-00000001-1 on b: Its words.")

    def test_members_on_each_others_nodes_are_left_over_and_go(self) -> None:
        members = (make_member(0, node="b"), make_member(1, node="a"))
        seen = replace(observe_gang(Status.PREPARING, (None, None)), server=make_server(members=members))
        assert isinstance(plan_reservation(seen)[0], DeleteServer)

    def test_each_member_gets_the_share_of_one_node(self) -> None:
        create, _ = plan_reservation(observe_gang(Status.PREPARING, (None, None)))
        assert isinstance(create, CreateServer)
        assert (create.spec.nodes, create.spec.gpu_count, create.spec.gpus_per_node) == (GANG_NODES, 8, 4)
        assert create.spec.share == QUAD.share_of(4)

    def test_active_gang_keeps_the_address_of_every_member(self) -> None:
        seen = observe_gang(Status.PREPARING, (ServerPhase.READY, ServerPhase.READY))
        record = only_record(plan_reservation(seen))
        assert record.after.location.members == tuple(Member(node, ADDRESS, HOST_KEYS) for node in GANG_NODES)
