"""What a drain means for nodes, for those who are there, and for those who want more time there."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from gpudev.domain.capacity import Node
from gpudev.domain.drain import (
    MAX_REASON,
    Drain,
    check_stays,
    find_state,
    list_emptied,
    read_reason,
    take_out,
    tell_of_drain,
    tell_of_stay,
)
from gpudev.domain.errors import Conflict, Invalid
from gpudev.domain.names import NodeName
from gpudev.domain.notices import NOTICE_FILE, list_notices, tell_of_end
from gpudev.domain.reservation import Reservation, clean
from gpudev.domain.server import Member
from gpudev.texts.vocabulary import NodeState
from tests.support.domain_values import NOW, make_reservation
from tests.support.parts import change
from tests.support.words import words_of

NODES = tuple(Node(NodeName(f"t4-{number}"), "t4", 4, 4) for number in range(2))
DRAIN = Drain(NodeName("t4-0"), "t4", "new fans")


def on(*names: str) -> Reservation:
    members = tuple(Member(NodeName(name)) for name in names)
    return change(
        make_reservation(), members=members, node_count=len(names), expires_at=NOW + timedelta(hours=2)
    )


def test_a_drained_node_takes_nothing_new_and_others_are_as_they_were() -> None:
    out, other = take_out(NODES, (DRAIN,))
    assert not out.is_schedulable
    assert other == NODES[1]
    assert take_out(NODES, ()) == NODES


@pytest.mark.parametrize(
    "present,schedulable,drained,holders,state",
    [
        (True, True, False, True, NodeState.IN_SERVICE),
        (True, False, False, True, NodeState.CLOSED),
        (True, True, True, True, NodeState.DRAINING),
        (True, False, True, True, NodeState.DRAINING),
        (True, True, True, False, NodeState.DRAINED),
        (False, False, True, False, NodeState.GONE),
    ],
)
def test_where_a_node_stands(
    *, present: bool, schedulable: bool, drained: bool, holders: bool, state: NodeState
) -> None:
    found = find_state(
        is_present=present, is_schedulable=schedulable, is_drained=drained, has_holders=holders
    )
    assert found is state


class TestEmpty:
    def test_a_node_is_empty_when_nobody_holds_room_there(self) -> None:
        assert list_emptied((DRAIN,), "t4", ()) == ("t4-0",)
        assert list_emptied((DRAIN,), "t4", (on("t4-1"),)) == ("t4-0",)
        assert list_emptied((DRAIN,), "t4", (on("t4-1", "t4-0"),)) == ()

    def test_what_has_ended_counts_until_it_is_cleaned_away(self) -> None:
        assert list_emptied((DRAIN,), "t4", (clean(on("t4-0"), NOW),)) == ("t4-0",)

    def test_it_is_noted_once_and_by_the_pass_of_its_type(self) -> None:
        assert list_emptied((replace(DRAIN, is_empty=True),), "t4", ()) == ()
        assert list_emptied((DRAIN,), "a100", ()) == ()


class TestWords:
    def test_the_owner_reads_which_node_why_until_when_and_what_to_do(self) -> None:
        words = words_of(tell_of_drain(on("t4-0"), (DRAIN,)))
        assert words.startswith("Node t4-0 is being taken out of service: new fans. Reservation ")
        assert f"runs on until {NOW + timedelta(hours=2):%Y-%m-%d %H:%M:%S} UTC" in words
        assert "cannot be extended. Save your work before" in words

    def test_nothing_is_said_of_other_nodes(self) -> None:
        assert tell_of_drain(on("t4-1"), (DRAIN,)) is None
        assert tell_of_drain(on("t4-0"), ()) is None

    def test_several_nodes_of_one_reservation_are_told_in_one_sentence(self) -> None:
        drains = (replace(DRAIN, node=NodeName("t4-1")), DRAIN)
        words = words_of(tell_of_drain(on("t4-0", "t4-1"), drains))
        assert words.startswith("Nodes t4-0, t4-1 are being taken out of service: new fans. ")
        assert words_of(tell_of_stay(on("t4-0", "t4-1"))).startswith(
            "Nodes t4-0, t4-1 stay in service after all. "
        )

    def test_a_reason_may_be_left_out(self) -> None:
        words = words_of(tell_of_drain(on("t4-0"), (Drain(NodeName("t4-0"), "t4"),)))
        assert words.startswith("Node t4-0 is being taken out of service. ")

    def test_it_stands_on_the_server_and_is_taken_away_again(self) -> None:
        [notice] = list_notices(change(on("t4-0"), drain_warning="Node t4-0 leaves."))
        assert (notice.file_name, notice.text) == ("WARN_NODE_LEAVES.txt", "Node t4-0 leaves.")
        assert NOTICE_FILE.fullmatch(notice.file_name)
        assert list_notices(on("t4-0")) == ()

    def test_nothing_in_a_notice_acts_on_a_terminal(self) -> None:
        """It is written to every terminal of the server, whatever somebody has called something."""
        [notice] = list_notices(change(on("t4-0"), drain_warning="Why: \x1b[2J\u202e\n\x9b"))
        assert notice.text == "Why: ?[2J???"

    def test_a_warning_of_the_end_does_not_offer_what_would_be_refused(self) -> None:
        assert "gpu-dev edit" in words_of(tell_of_end(on("t4-0"), 30))
        leaving = words_of(tell_of_end(change(on("t4-0"), drain_warning="Node t4-0 leaves."), 30))
        assert "--extend" not in leaving
        assert "cannot be extended" in leaving


def test_more_time_is_refused_on_a_node_that_leaves_and_only_there() -> None:
    check_stays(on("t4-1"), (DRAIN,))
    with pytest.raises(Conflict, match="Node t4-0 is being taken out of service: new fans") as refused:
        check_stays(on("t4-1", "t4-0"), (DRAIN,))
    assert refused.value.code == "node_is_leaving"


class TestReason:
    def test_its_full_stop_is_ours(self) -> None:
        assert read_reason("  new fans. ") == "new fans"
        assert read_reason("") == ""

    @pytest.mark.parametrize("text", ["a\nb", "\x1b[31mred", "x" * (MAX_REASON + 1)])
    def test_what_is_not_one_line_for_a_terminal_is_refused(self, text: str) -> None:
        with pytest.raises(Invalid):
            read_reason(text)
