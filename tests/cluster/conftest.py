"""A running Kubernetes for the tests in this folder, which only `make test-cluster` collects.

With `KUBECONFIG` set it is that cluster, used in namespaces of its own; else one is made for this run.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.kubernetes.access import Access
from tests.support.kubernetes.cluster import Cluster, find_cluster
from tests.support.kubernetes.lock import locked


@pytest.fixture(scope="session")
def access(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Access]:
    """Any cluster, through its API, as somebody who may do everything."""
    kubeconfig = os.environ.get("KUBECONFIG")
    if kubeconfig is None:
        cluster: Cluster = request.getfixturevalue("cluster")
        yield cluster.access
        return
    kubectl = shutil.which("kubectl")
    ours = find_cluster(Path(kubeconfig))
    if ours is not None:
        yield ours.access
    elif kubectl is None:
        pytest.fail("KUBECONFIG names a cluster that needs a kubectl on the PATH.")
    else:
        yield Access(Path(kubeconfig), kubectl, tmp_path_factory.mktemp("kubeconfigs"))


@pytest.fixture(scope="session")
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """A cluster that the test may treat badly: stop its API server, kill its kubelets, add nodes."""
    kubeconfig = os.environ.get("KUBECONFIG")
    if kubeconfig is not None:
        ours = find_cluster(Path(kubeconfig))
        if ours is None:
            pytest.skip("KUBECONFIG names somebody else's cluster.")
        yield ours
        return
    made = Cluster("test")
    capture = request.config.pluginmanager.getplugin("capturemanager")
    with locked(made.name):
        try:
            # The first time it takes minutes: let people see what happens.
            with capture.global_and_fixture_disabled():
                made.up()
            yield made
        finally:
            made.down()


@pytest.fixture
def namespace(access: Access) -> Iterator[str]:
    """A namespace of this test alone."""
    with access.namespace() as name:
        yield name


@pytest.fixture(scope="module", params=[1, 2], ids=["one_controller", "two_controllers"])
def controllers(request: pytest.FixtureRequest) -> int:
    """How many controllers, and as many API processes: what works with one works with two."""
    count: int = request.param
    return count


@pytest.fixture(scope="module")
def own_namespace(
    access: Access,
    controllers: int,
) -> Iterator[str]:
    """A namespace of one running product: there is one for each number of controllers."""
    with access.namespace() as name:
        yield name
