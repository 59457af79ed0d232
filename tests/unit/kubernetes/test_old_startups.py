"""Which start-up files are taken away: those of older versions, once no pod has them mounted."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from gpudev.adapters.kubernetes.api_objects import Json, name_of
from gpudev.adapters.kubernetes.manifests.pod import make_pod
from gpudev.adapters.kubernetes.old_startups import list_unused
from gpudev.adapters.kubernetes.startup import make_startup, startup_name
from tests.support.kubernetes_values import make_order

NOW = datetime(2026, 1, 2, 12, tzinfo=UTC)
LONG_AGO = NOW - timedelta(days=30)
OLD, OLDER = "gpu-dev-startup-0123456789", "gpu-dev-startup-9876543210"


def startup(name: str, created: datetime | None = LONG_AGO) -> Json:
    made = make_startup("gpu-dev")
    times = {"creationTimestamp": created.isoformat()} if created else {}
    return made | {"metadata": made["metadata"] | {"name": name} | times}


def pod_with(name: str) -> Json:
    return make_pod(make_order(startup=name))


def unused(startups: list[Json], pods: list[Json]) -> list[str]:
    return [name_of(one) for one in list_unused(startups, pods, NOW)]


def test_an_old_one_that_no_pod_has_is_taken_away() -> None:
    assert unused([startup(OLD), startup(OLDER)], [pod_with(OLDER)]) == [OLD]


def test_the_present_one_stays_though_nothing_uses_it_yet() -> None:
    assert unused([startup(startup_name())], []) == []


def test_one_that_was_just_made_belongs_to_a_version_that_is_being_rolled_out() -> None:
    young = startup(OLD, NOW - timedelta(minutes=59))
    assert unused([young], []) == []


def test_one_of_unknown_age_stays() -> None:
    assert unused([startup(OLD, None)], []) == []


def test_a_pod_without_volumes_uses_none() -> None:
    assert unused([startup(OLD)], [{"spec": {}}]) == [OLD]
