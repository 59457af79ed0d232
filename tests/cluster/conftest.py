"""A running Kubernetes for the tests in this folder, which only `make test-cluster` collects.

With `KUBECONFIG` set it is that cluster, used in namespaces of its own; else one is made for this run.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.kubernetes.access import Access
from tests.support.kubernetes.cluster import Cluster, find_cluster
from tests.support.kubernetes.lock import locked


@pytest.fixture(scope="session")
def access(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Access]:
    """Any cluster, through its API, as somebody who may do everything."""
    kubeconfig = os.environ.get("KUBECONFIG")
    if kubeconfig is None:
        made: Cluster = request.getfixturevalue("shared_cluster")
        yield made.access
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
def cluster(shared_cluster: Cluster) -> Cluster:
    """A cluster that the test may treat badly: stop its API server, kill its kubelets, add nodes."""
    return shared_cluster


@pytest.fixture(scope="session")
def shared_cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """The same, under a name that no test replaces: those of a port have a fixture `cluster` of their own."""
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


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """CI has time for half of what is tried with one controller and with two; the other half is for the soak.

    The stories are told with one. A controller that dies before an action leaves it to its own successor, one
    that dies after it to another that runs already; silence is borne by two.
    """
    for item in items:
        callspec = getattr(item, "callspec", None)
        if callspec is not None and _is_for_soak(item.path.stem, callspec.params):
            item.add_marker(pytest.mark.soak)


def _is_for_soak(module: str, chosen: dict[str, Any]) -> bool:
    match module, chosen:
        case "test_end_to_end", {"controllers": 2}:
            return True
        case "test_faults", {"controllers": controllers, "point": point}:
            return bool((controllers == 1) is (point.when != "before"))
        case "test_faults", {"controllers": 1, "seconds": _}:
            return True
    return False


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
