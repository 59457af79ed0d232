"""A node that is drained while one runs there and one waits for it, on a real database."""

from __future__ import annotations

from datetime import timedelta

import pytest
from structlog.testing import capture_logs

from gpudev.app.controllers.admission import AdmissionController
from gpudev.app.controllers.reservations import Rules
from gpudev.app.identity.authentication import Caller
from gpudev.app.nodes import NodeUseCases
from gpudev.app.reservations.operations import ExtensionRequest, OperationRequests
from gpudev.app.reservations.preview import Preview
from gpudev.bootstrap.foundation import Stores
from gpudev.domain.catalogue import DEFAULT_CATALOGUE
from gpudev.domain.errors import Conflict, NotFound
from gpudev.domain.expiry import TimePolicy
from gpudev.domain.names import NodeName, OperationId, UserId
from gpudev.domain.notification import Target, wants
from gpudev.domain.reservation import Reservation
from gpudev.ports.reservations import StoredEvent
from gpudev.ports.turns import Kind
from gpudev.texts.vocabulary import EventKind, NodeState, OperationKind, Reason, Status, TargetKind, Topic
from tests.support.engines import make_reservation_engine
from tests.support.reservations import NOON, make_reservation, open_test_stores, submit
from tests.support.simulated_cluster import SimulatedCluster
from tests.support.simulation import MovableClock
from tests.support.words import words_of

pytestmark = pytest.mark.anyio

HOUR = timedelta(hours=1)
POLICY = TimePolicy()
GRACE = Caller(UserId(0), "grace", is_active=True, is_admin=True)


class World:
    """Two nodes of four GPUs."""

    def __init__(self, stores: Stores, *nodes: str) -> None:
        self.stores = stores
        self.clock = MovableClock()
        self.cluster = SimulatedCluster("t4", {NodeName(node): 4 for node in nodes})
        rules = Rules(DEFAULT_CATALOGUE, POLICY)
        self.admission = AdmissionController(
            stores.admissions, stores.nodes, self.cluster, rules, self.clock, "test"
        )
        self.controller = make_reservation_engine(stores, self.cluster, self.clock, rules)
        self.drains = NodeUseCases(stores.nodes, stores.audit, self.clock)
        preview = Preview(stores.admissions, DEFAULT_CATALOGUE, POLICY, self.clock)
        self.operations = OperationRequests(stores.operations, self.clock, preview, stores.nodes)

    async def ask(self, hours: int) -> Reservation:
        """For a whole node."""
        user = await self.stores.users.upsert("ada")
        made = make_reservation(user, gpu_count=4, duration=hours * HOUR, created_at=self.clock.time)
        return await submit(self.stores, made)

    async def work(self) -> None:
        """Until nothing more happens by itself: a pass, turns, servers that answer, and all of it again."""
        for _ in range(3):
            await self.admission.turn("t4")
            for _ in range(2):
                for key in await self.stores.turns.list_due(Kind.RESERVATION, self.clock.time, 100):
                    await self.controller.turn(key)
                for one in self.cluster.servers:
                    self.cluster.become_ready(one)
                    await self.controller.turn(one)

    async def get(self, one: Reservation) -> Reservation:
        return await self.stores.reservations.get(one.id)

    async def find_event(self, one: Reservation, kind: EventKind) -> StoredEvent:
        events = await self.stores.reservations.list_events(one.id, 0)
        [found] = [stored for stored in events if stored.event.kind is kind]
        return found

    async def find_state(self, node: str) -> NodeState:
        return next(one.state for one in await self.stores.nodes.list_all() if one.name == node)


async def test_one_runs_on_is_told_and_one_that_waits_goes_elsewhere(database: str) -> None:
    async with open_test_stores(database) as stores:
        world = World(stores, "t4-0", "t4-1")
        short, long = await world.ask(2), await world.ask(6)
        await world.work()
        node = (await world.get(short)).node
        other = (await world.get(long)).node
        assert node is not None
        assert {node, other} == {"t4-0", "t4-1"}
        waiting = await world.ask(1)
        await world.work()
        promised = await world.get(waiting)
        assert promised.forecast.planned_nodes == (node,)

        drained, message = await world.drains.drain(GRACE, node, "new fans.")
        assert [holder.id for holder in drained.holders] == [short.id]
        assert words_of(message) == (
            f"Node {node} is being drained: nothing new is placed there. "
            "1 reservation is still there, until 2026-03-01 14:00 UTC at the latest; its owner is told."
        )
        await world.work()
        told = (await world.find_event(short, EventKind.NODE_LEAVES)).event.message
        assert told.startswith(f"Node {node} is being taken out of service: new fans. ")
        assert world.cluster.shown[short.id, told] == 1
        assert (await world.get(short)).state.status is Status.ACTIVE
        replanned = await world.get(waiting)
        assert replanned.forecast.planned_nodes == (other,)
        why = (await world.find_event(waiting, EventKind.REPLANNED)).event.message
        assert why.endswith(f"{node} is out of service.")
        assert (await world.get(long)).memory.drain_warning is None

        with pytest.raises(Conflict, match="is being taken out of service: new fans"):
            await world.operations.extend(GRACE, await world.get(short), ExtensionRequest(1))


async def test_who_wants_to_hear_of_warnings_is_notified_of_both(database: str) -> None:
    async with open_test_stores(database) as stores:
        world = World(stores, "t4-0")
        one = await world.ask(2)
        await world.work()
        target = Target(one.spec.user_id, TargetKind.WEBHOOK, "https://x.test", frozenset({Topic.WARNINGS}))
        await stores.notifications.set_target(target)
        await world.drains.drain(GRACE, "t4-0", "new fans")
        await world.work()
        await world.drains.undrain(GRACE, "t4-0")
        await world.work()
        due = [delivery.notification for delivery in await stores.notifications.read(10, HOUR)]
    assert [told.event for told in due if wants(target, told.event)] == ["node_leaves", "node_stays"]
    assert due[0].message.startswith("Node t4-0 is being taken out of service: new fans. ")
    assert "14:00:00 UTC" in due[0].message


async def test_who_is_notified_reads_times_where_they_were_when_asking(database: str) -> None:
    async with open_test_stores(database) as stores:
        world = World(stores, "t4-0")
        one = await world.ask(2)
        await stores.database.execute("UPDATE reservation_settings SET time_zone = 'Asia/Kolkata'")
        await world.work()
        target = Target(one.spec.user_id, TargetKind.WEBHOOK, "https://x.test", frozenset({Topic.WARNINGS}))
        await stores.notifications.set_target(target)
        await world.drains.drain(GRACE, "t4-0", "new fans")
        await world.work()
        [due] = await stores.notifications.read(10, HOUR)
    assert "runs on until 2026-03-01 19:30:00 IST and cannot be extended" in due.notification.message


async def test_a_node_becomes_empty_is_logged_as_drained_and_can_come_back(database: str) -> None:
    async with open_test_stores(database) as stores:
        world = World(stores, "t4-0")
        one = await world.ask(2)
        await world.work()
        await world.drains.drain(GRACE, "t4-0", "")
        await world.work()
        waiting = await world.ask(1)
        await world.work()
        queued = await world.get(waiting)
        assert (queued.state.status, queued.state.reason) == (Status.QUEUED, Reason.NO_NODES)
        assert await world.find_state("t4-0") is NodeState.DRAINING

        world.clock.time = NOON + 3 * HOUR
        with capture_logs() as logs:
            await world.work()
        assert [log["node"] for log in logs if log["event"] == "node_drained"] == ["t4-0"]
        assert (await world.get(one)).state.status is Status.EXPIRED
        assert await world.find_state("t4-0") is NodeState.DRAINED
        assert (await world.get(waiting)).state.status is Status.QUEUED

        _, message = await world.drains.undrain(GRACE, "t4-0")
        assert words_of(message) == "Node t4-0 is in service again."
        await world.work()
        assert (await world.get(waiting)).state.status is Status.ACTIVE


async def test_a_drain_that_is_called_off_is_told_and_more_time_is_given_again(database: str) -> None:
    async with open_test_stores(database) as stores:
        world = World(stores, "t4-0")
        one = await world.ask(2)
        await world.work()
        await world.drains.drain(GRACE, "t4-0", "")
        await world.work()
        assert [notice.file_name for notice in world.cluster.homes[one.id]] == ["WARN_NODE_LEAVES.txt"]
        await world.drains.undrain(GRACE, "t4-0")
        await world.work()
        await world.find_event(one, EventKind.NODE_STAYS)
        assert world.cluster.homes[one.id] == frozenset()
        await world.operations.extend(GRACE, await world.get(one), ExtensionRequest(1))
        await world.work()
        assert (await world.get(one)).state.expires_at == NOON + 3 * HOUR


async def test_an_extension_that_was_accepted_just_before_is_refused_with_the_reason(database: str) -> None:
    async with open_test_stores(database) as stores:
        world = World(stores, "t4-0")
        one = await world.ask(2)
        await world.work()
        accepted = await world.operations.extend(GRACE, await world.get(one), ExtensionRequest(1))
        await world.drains.drain(GRACE, "t4-0", "")
        await world.work()
        outcome = await stores.operations.get(accepted.operation_id, None)
        assert words_of(outcome.error).startswith("Node t4-0 is being taken out of service.")
        assert (await world.get(one)).state.expires_at == NOON + 2 * HOUR


async def test_who_cancels_on_a_node_that_leaves_empties_it(database: str) -> None:
    async with open_test_stores(database) as stores:
        world = World(stores, "t4-0")
        one = await world.ask(2)
        await world.work()
        await world.drains.drain(GRACE, "t4-0", "")
        operation = OperationId("11111111-1111-4111-8111-111111111111")
        await stores.operations.request(operation, await world.get(one), OperationKind.CANCEL, NOON)
        await world.work()
        [node] = await stores.nodes.list_all()
        assert node.drain is not None
        assert (node.state, node.drain.emptied_at) == (NodeState.DRAINED, NOON)


async def test_an_unknown_node_is_answered_with_those_there_are(database: str) -> None:
    async with open_test_stores(database) as stores:
        world = World(stores, "t4-0", "t4-1")
        await world.work()
        with pytest.raises(NotFound, match='There is no node "t4-9"') as missing:
            await world.drains.drain(GRACE, "t4-9", "")
        assert missing.value.hint == "Nodes: t4-0, t4-1."
        with pytest.raises(NotFound):
            await world.drains.undrain(GRACE, "t4-9")
        _, message = await world.drains.undrain(GRACE, "t4-0")
        assert words_of(message) == "Node t4-0 was not drained."
