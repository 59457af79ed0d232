"""A real Kubernetes does what every cluster must do, under the roles that the controllers have."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from gpudev.ports.cluster import Cluster as ClusterPort
from tests.contract.cluster_rules import ClusterRules, GangRules
from tests.support.kubernetes.access import Access
from tests.support.kubernetes_backend import KubernetesBackend, make_config
from tests.support.kubernetes_roles import CONTROLLER, applied_roles
from tests.support.local_cluster import Key, make_key

pytestmark = pytest.mark.anyio


@pytest.fixture
def backend(access: Access, namespace: str) -> Iterator[KubernetesBackend]:
    with applied_roles(access, namespace):
        yield KubernetesBackend(make_config(access.kubeconfig_for(CONTROLLER, namespace), namespace))


@pytest.fixture
def key(tmp_path: Path) -> Key:
    return make_key(tmp_path)


@pytest.fixture
async def cluster(backend: KubernetesBackend) -> AsyncIterator[ClusterPort]:
    async with backend.open() as opened:
        yield opened


class TestRules(ClusterRules):
    pass


class TestGangRules(GangRules):
    pass
