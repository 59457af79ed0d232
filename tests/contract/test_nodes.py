"""What every store of nodes must do, on real PostgreSQL."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest

from gpudev.bootstrap.foundation import Stores
from gpudev.domain.audit import AuditEntry
from gpudev.domain.capacity import Node
from gpudev.domain.drain import Drain
from gpudev.domain.names import NodeName
from gpudev.domain.plans.turn import Record
from gpudev.domain.reservation import Event, place
from gpudev.ports.audit import AuditQuery
from gpudev.ports.nodes import StoredNode
from gpudev.ports.turns import Kind
from gpudev.ports.users import User
from gpudev.texts.fact import fact
from gpudev.texts.vocabulary import EventKind, NodeState
from tests.support.active import make_active
from tests.support.reservations import NOON, make_reservation, submit

pytestmark = pytest.mark.anyio

LATER = NOON + timedelta(minutes=1)
DRAIN = Drain(NodeName("t4-0"), "t4", "new fans")
ENTRY = AuditEntry("grace", "drain_node", "t4-0")
FLEET = (
    Node(NodeName("t4-0"), "t4", 4, 4),
    Node(NodeName("t4-1"), "t4", 4, 4, is_schedulable=False),
    Node(NodeName("a100-0"), "a100", 8, 8),
)


@pytest.fixture(autouse=True)
async def fleet(stores: Stores) -> None:
    await show_nodes(stores, *FLEET)


async def show_nodes(stores: Stores, *nodes: Node) -> None:
    """As a pass of admission for each type does."""
    for gpu_type in ("t4", "a100"):
        async with stores.admissions.lock(gpu_type) as transaction:
            await transaction.set_nodes(nodes)


async def find(stores: Stores, name: str) -> StoredNode:
    return next(node for node in await stores.nodes.list_all() if node.name == name)


async def test_nodes_are_listed_by_type_and_name_with_what_is_there(stores: Stores, user: User) -> None:
    active = await make_active(stores, user, now=NOON)
    listed = await stores.nodes.list_all()
    assert [(node.name, node.slots, node.state) for node in listed] == [
        ("a100-0", 8, NodeState.IN_SERVICE),
        ("t4-0", 4, NodeState.IN_SERVICE),
        ("t4-1", 4, NodeState.CLOSED),
    ]
    assert [[holder.id for holder in node.holders] for node in listed] == [[], [active.id], []]


async def test_a_drain_is_kept_with_its_audit_entry_and_the_same_again_changes_nothing(
    stores: Stores, user: User
) -> None:
    await make_active(stores, user, now=NOON)
    await stores.nodes.drain(DRAIN, NOON, ENTRY)
    drained = await find(stores, "t4-0")
    assert drained.state is NodeState.DRAINING
    assert drained.drain is not None
    assert (drained.drain.reason, drained.drain.by, drained.drain.at) == ("new fans", "grace", NOON)
    await stores.nodes.drain(replace(DRAIN, reason=""), LATER, replace(ENTRY, username="root"))
    assert await find(stores, "t4-0") == drained
    assert await stores.nodes.list_drains() == (DRAIN,)
    entries = await stores.audit.list_page(AuditQuery(action="drain_node"))
    assert [record.entry.username for record in entries] == ["root", "grace"]


async def test_another_reason_replaces_the_one_before(stores: Stores) -> None:
    await stores.nodes.drain(DRAIN, NOON, ENTRY)
    await stores.nodes.drain(replace(DRAIN, reason="new disks"), LATER, ENTRY)
    assert [drain.reason for drain in await stores.nodes.list_drains()] == ["new disks"]


async def test_who_is_there_gets_a_turn_that_sees_it_and_a_turn_in_flight_does_not_go_by(
    stores: Stores, user: User
) -> None:
    active = await make_active(stores, user, now=NOON)
    flying = await stores.reservations.claim(active.id, timedelta(seconds=30))
    assert flying is not None
    assert flying.drains == ()
    await stores.nodes.drain(DRAIN, LATER, ENTRY)
    await stores.turns.end(flying.lease, LATER + timedelta(hours=1))
    assert await stores.turns.list_due(Kind.RESERVATION, LATER, 10) == (active.id,)
    claim = await stores.reservations.claim(active.id, timedelta(seconds=30))
    assert claim is not None
    assert claim.drains == (DRAIN,)


async def test_a_member_of_a_gang_is_seen_on_each_of_its_nodes(stores: Stores, user: User) -> None:
    asked = await submit(stores, make_reservation(user, gpu_count=8, node_count=2))
    nodes = (NodeName("t4-1"), NodeName("t4-0"))
    placed = Record(
        asked, place(asked, nodes, NOON), Event(EventKind.PLACED, fact("words", words="Placed."), NOON)
    )
    async with stores.admissions.lock("t4") as transaction:
        assert await transaction.record(placed)
    await stores.nodes.drain(DRAIN, LATER, ENTRY)
    claim = await stores.reservations.claim(asked.id, timedelta(seconds=30))
    assert claim is not None
    assert (claim.drains, claim.reservation.version) == ((DRAIN,), asked.version + 2)
    assert [holder.id for holder in (await find(stores, "t4-0")).holders] == [asked.id]


async def test_a_drain_waits_for_the_pass_under_way_and_so_sees_what_it_places(
    stores: Stores, user: User
) -> None:
    asked = await submit(stores, make_reservation(user))
    placed = Record(
        asked,
        place(asked, (NodeName("t4-0"),), NOON),
        Event(EventKind.PLACED, fact("words", words="Placed."), NOON),
    )
    async with stores.admissions.lock("t4") as transaction:
        draining = asyncio.create_task(stores.nodes.drain(DRAIN, LATER, ENTRY))
        assert await transaction.list_drains() == ()
        assert await transaction.record(placed)
        assert not draining.done()
    await draining
    assert [holder.id for holder in (await find(stores, "t4-0")).holders] == [asked.id]
    async with stores.admissions.lock("t4") as transaction:
        assert await transaction.list_drains() == (DRAIN,)


async def test_that_a_node_is_empty_is_noted_once_and_waited_for_until_then(stores: Stores) -> None:
    await stores.nodes.drain(DRAIN, NOON, ENTRY)
    assert await stores.admissions.list_waiting_types() == ("t4",)
    for noted in (("t4-0",), ()):
        async with stores.admissions.lock("t4") as transaction:
            assert await transaction.set_emptied([DRAIN.node], LATER) == noted
    assert await stores.admissions.list_waiting_types() == ()
    emptied = await find(stores, "t4-0")
    assert emptied.drain is not None
    assert (emptied.state, emptied.drain.emptied_at) == (NodeState.DRAINED, LATER)


async def test_a_drain_is_called_off_and_that_again_changes_nothing(stores: Stores) -> None:
    await stores.nodes.drain(DRAIN, NOON, ENTRY)
    assert await stores.nodes.undrain(DRAIN.node, "t4", ENTRY)
    assert not await stores.nodes.undrain(DRAIN.node, "t4", ENTRY)
    assert (await find(stores, "t4-0")).state is NodeState.IN_SERVICE


async def test_a_drained_node_that_left_the_cluster_is_still_known(stores: Stores) -> None:
    await stores.nodes.drain(DRAIN, NOON, ENTRY)
    await show_nodes(stores, *FLEET[1:])
    gone = await find(stores, "t4-0")
    assert (gone.state, gone.slots) == (NodeState.GONE, 0)
    await show_nodes(stores, *FLEET)
    assert (await find(stores, "t4-0")).state is NodeState.DRAINED
