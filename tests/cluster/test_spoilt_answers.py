"""Ten minutes of answers that are not the API server's own: no healthy reservation may end of them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from gpudev.adapters.kubernetes.cluster import KubernetesCluster
from gpudev.domain.catalogue import DEFAULT_CATALOGUE, Catalogue
from gpudev.domain.errors import ClusterUnavailable
from gpudev.domain.names import ReservationId
from gpudev.texts.vocabulary import Reason, Status
from tests.support.controlled_world import World, eventually, working_controllers
from tests.support.kubernetes.access import Access
from tests.support.kubernetes.spoiling import SpoilingProxy, Spoilt, spoiling_proxy
from tests.support.kubernetes_backend import CATALOGUE, make_config
from tests.support.kubernetes_roles import CONTROLLER, applied_roles
from tests.support.reservations import NOON, make_reservation, open_test_stores, submit

pytestmark = pytest.mark.anyio

STEP = timedelta(seconds=200)
STEPS = 3
KNOWN = Catalogue(tuple(CATALOGUE.find(default.name) or default for default in DEFAULT_CATALOGUE.types))


@pytest.fixture
def kubeconfig(access: Access, namespace: str) -> Iterator[Path]:
    with applied_roles(access, namespace):
        yield access.kubeconfig_for(CONTROLLER, namespace)


@pytest.fixture
def proxy(access: Access, kubeconfig: Path) -> Iterator[SpoilingProxy]:
    with spoiling_proxy(access.endpoint(), kubeconfig) as running:
        yield running


@pytest.fixture
async def world(
    proxy: SpoilingProxy, kubeconfig: Path, namespace: str, database: str, tmp_path: Path
) -> AsyncIterator[World]:
    assert proxy.how is Spoilt.NOT
    async with (
        open_test_stores(database) as stores,
        KubernetesCluster(make_config(kubeconfig, namespace)) as cluster,
    ):
        world = World(stores, cluster)
        async with working_controllers(world, tmp_path, KNOWN):
            yield world


async def take_turn(world: World, reservation_id: ReservationId) -> None:
    """The clock goes on by a step, and the reservation has had its turn, whatever came of it."""
    await world.move_to(world.clock.now() + STEP, await world.stores.reservations.get(reservation_id))

    async def is_taken() -> bool:
        query = "SELECT next_turn_at > $2 FROM turns WHERE key = $1"
        return bool(await world.stores.database.fetch_value(query, reservation_id, world.clock.now()))

    await eventually(is_taken, seconds=90)


async def test_no_healthy_reservation_ends_of_answers_that_are_not_the_clusters(
    world: World, proxy: SpoilingProxy, access: Access, namespace: str
) -> None:
    asked = make_reservation(await world.user(), gpu_type="h100", duration=timedelta(hours=2))
    active = await world.active(await submit(world.stores, asked))
    for how in (Spoilt.ERROR, Spoilt.PAGE, Spoilt.OF_ANOTHER, Spoilt.SILENCE):
        proxy.spoil(how)
        for _ in range(STEPS):
            await take_turn(world, active.id)
            assert (await world.get(active)).state.status is Status.ACTIVE, how
        with pytest.raises(ClusterUnavailable):
            await world.cluster.find_server(active.id)
        assert proxy.spoilt > 0, "nobody was spoilt"
    assert world.clock.now() - NOON == STEP * STEPS * 4

    proxy.spoil(Spoilt.NOT)
    access.kubectl("delete", "pod", f"gpu-dev-{active.id8}", f"--namespace={namespace}", "--wait=false")
    ended = await world.until(active, lambda now: now.is_cleaned)
    assert (ended.state.status, ended.state.reason) == (Status.FAILED, Reason.POD_DELETED)
