"""The home of a server that follows another one of the same reservation."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import pytest

from gpudev.adapters.kubernetes.api_objects import Json, Kind, name_of
from gpudev.adapters.kubernetes.client import AlreadyExists, KubernetesClient
from gpudev.adapters.kubernetes.config import Homes
from gpudev.adapters.kubernetes.provisioner import HomeClaims
from gpudev.domain.disk import VolumeId
from gpudev.domain.errors import ClusterUnavailable
from gpudev.domain.server import HomeVolume
from tests.support.kubernetes_values import CONFIG, at, made, make_spec

pytestmark = pytest.mark.anyio

SPEC = make_spec(home=HomeVolume(VolumeId("vol-1"), "work", 100, "a"))


def service(uid: str) -> Json:
    return {"metadata": {"name": "slot", "uid": uid}}


class Objects:
    """What was made, by name; in the place of an API server."""

    def __init__(self) -> None:
        self.made: dict[str, Json] = {}

    async def create(self, _kind: Kind, manifest: Json) -> Json:
        name = name_of(manifest)
        if name in self.made:
            raise AlreadyExists(f"{name} is there.")
        self.made[name] = made(manifest)
        return self.made[name]

    async def find(self, _kind: Kind, name: str) -> Json | None:
        return self.made.get(name)

    async def delete(self, _kind: Kind, name: str, _uid: str) -> None:
        del self.made[name]


@pytest.fixture
def objects() -> Objects:
    return Objects()


@pytest.fixture
def homes(objects: Objects) -> HomeClaims:
    return HomeClaims(cast("KubernetesClient", objects), replace(CONFIG, homes=Homes.EBS))


async def test_a_second_try_finds_what_the_first_has_made(homes: HomeClaims) -> None:
    claim = await homes.prepare(SPEC, service("uid-1"))
    assert await homes.prepare(SPEC, service("uid-1")) == claim


async def test_a_volume_whose_claim_is_gone_is_made_anew(homes: HomeClaims, objects: Objects) -> None:
    claim = await homes.prepare(SPEC, service("uid-1"))
    del objects.made[claim]
    [volume] = objects.made.values()
    volume["status"] = {"phase": "Released"}
    with pytest.raises(ClusterUnavailable):
        await homes.prepare(SPEC, service("uid-2"))
    assert await homes.prepare(SPEC, service("uid-2")) == claim
    assert all("status" not in each for each in objects.made.values())


async def test_a_claim_of_the_earlier_server_is_made_anew(homes: HomeClaims, objects: Objects) -> None:
    claim = await homes.prepare(SPEC, service("uid-1"))
    with pytest.raises(ClusterUnavailable):
        await homes.prepare(SPEC, service("uid-2"))
    assert await homes.prepare(SPEC, service("uid-2")) == claim
    [owner] = objects.made[claim]["metadata"]["ownerReferences"]
    assert owner["uid"] == "uid-2"


async def test_a_claim_that_is_going_is_waited_for(homes: HomeClaims, objects: Objects) -> None:
    claim = await homes.prepare(SPEC, service("uid-1"))
    objects.made[claim]["metadata"]["deletionTimestamp"] = at()
    with pytest.raises(ClusterUnavailable):
        await homes.prepare(SPEC, service("uid-1"))
    del objects.made[claim]
    assert await homes.prepare(SPEC, service("uid-1")) == claim
