"""Who gets which GPU."""

from __future__ import annotations

from gpudev.adapters.local.allotment import Given, NoRoom, allot, list_nodes
from gpudev.adapters.local.fleet import Fleet, NodeGroup, simulate_fleet
from gpudev.adapters.local.record import Record
from gpudev.domain.names import NodeName
from gpudev.domain.server import ServerSpec
from gpudev.texts.sentences import say
from tests.support.local_cluster import make_spec

FLEET = simulate_fleet([NodeGroup("t4", nodes=2, gpus=4), NodeGroup("cpu-x86", nodes=1, gpus=0)])
CPU = NodeName("cpu-x86-0")


def given(fleet: Fleet, records: list[Record], spec: ServerSpec) -> Record:
    allotment = allot(fleet, records, spec)
    assert isinstance(allotment, Given)
    return Record(spec, "uid", is_placed=True, gpus=allotment.gpus[0])


def refusal(records: list[Record], spec: ServerSpec) -> tuple[str, int]:
    """In words, and of which member."""
    no_room = allot(FLEET, records, spec)
    assert isinstance(no_room, NoRoom)
    return say(no_room.why), no_room.rank


def names(record: Record) -> list[str]:
    return [gpu.visible_name for gpu in record.gpus]


def test_gpus_are_given_once() -> None:
    first = given(FLEET, [], make_spec(gpus=2))
    second = given(FLEET, [first], make_spec(gpus=2))
    assert not set(names(first)) & set(names(second))
    assert isinstance(allot(FLEET, [first, second], make_spec(gpus=1)), NoRoom)


def test_the_lowest_free_ones_are_given() -> None:
    first, second = given(FLEET, [], make_spec()), None
    second = given(FLEET, [first], make_spec())
    assert names(given(FLEET, [second], make_spec(gpus=2))) == ["simulated-t4-0-0", "simulated-t4-0-2"]


def test_a_cpu_node_has_slots_for_three() -> None:
    taken: list[Record] = []
    for _ in range(3):
        taken.append(given(FLEET, taken, make_spec(gpus=0, node=CPU)))
    assert refusal(taken, make_spec(gpus=0, node=CPU)) == (
        "Node cpu-x86-0 has 0 of 3 free, and 1 are wanted.",
        0,
    )


def test_servers_that_were_not_placed_take_nothing() -> None:
    unplaced = Record(make_spec(gpus=4), "uid", is_placed=False)
    assert [node.free_slots for node in list_nodes(FLEET, [unplaced])] == [4, 4, 3]


def test_nodes_show_what_is_left() -> None:
    taken = [given(FLEET, [], make_spec(gpus=2)), given(FLEET, [], make_spec(gpus=0, node=CPU))]
    assert [node.free_slots for node in list_nodes(FLEET, taken)] == [2, 4, 2]


T4S = (NodeName("t4-0"), NodeName("t4-1"))


def test_a_gang_gets_all_gpus_of_each_of_its_nodes() -> None:
    spec = make_spec(gpus=8, nodes=T4S)
    allotment = allot(FLEET, [], spec)
    assert isinstance(allotment, Given)
    members = [
        Record(spec, "uid", is_placed=True, gpus=gpus, rank=rank) for rank, gpus in enumerate(allotment.gpus)
    ]
    assert [names(member) for member in members] == [
        [f"simulated-t4-{node}-{index}" for index in range(4)] for node in (0, 1)
    ]
    assert [node.free_slots for node in list_nodes(FLEET, members)] == [0, 0, 3]
    assert [node.free_slots for node in list_nodes(FLEET, members[:1])] == [0, 4, 3]


def test_a_gang_gets_nothing_where_one_node_has_no_room_and_that_one_is_named() -> None:
    taken = given(FLEET, [], make_spec(gpus=1, node=T4S[1]))
    assert refusal([taken], make_spec(gpus=8, nodes=T4S)) == (
        "Node t4-1 has 3 of 4 free, and 4 are wanted.",
        1,
    )
