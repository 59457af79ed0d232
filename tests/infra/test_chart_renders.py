"""The chart passes Helm's own checks, is valid Kubernetes, and looks as it did when somebody last read it."""

from __future__ import annotations

import re

import kubernetes_validate
import pytest
import yaml

from tests.support.golden import GOLDEN, check_file
from tests.support.infra.chart import (
    CHART,
    EXTERNAL_DATABASE,
    NAMESPACE,
    VALUES,
    HelmRefused,
    Manifest,
    Rendering,
    chosen,
    render,
    run_helm,
)

KUBERNETES = "1.36"
OF_THE_CLUSTER = {
    "ClusterRole",
    "ClusterRoleBinding",
    "Namespace",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
}
OF_THE_PROMETHEUS_OPERATOR = "monitoring.coreos.com/v1"

every_values_file = pytest.mark.parametrize("values", VALUES)


def test_every_values_file_is_checked() -> None:
    assert sorted(VALUES) == sorted(file.stem for file in (CHART / "values").iterdir())


@every_values_file
def test_helm_finds_nothing_to_complain_about(values: str) -> None:
    run_helm("lint", "--strict", "--quiet", str(CHART), "--namespace", NAMESPACE, *chosen(values))


@pytest.mark.parametrize(
    "rendering",
    [
        *(pytest.param(render(values), id=values) for values in VALUES),
        pytest.param(render("generic", EXTERNAL_DATABASE), id="external-database"),
        pytest.param(render("aws", (), "--is-upgrade"), id="upgrade"),
    ],
)
def test_every_object_fits_the_schema_of_kubernetes(rendering: Rendering) -> None:
    for one in rendering.objects:
        if one["apiVersion"] != OF_THE_PROMETHEUS_OPERATOR:
            kubernetes_validate.validate(one, KUBERNETES, strict=True)


@every_values_file
def test_nothing_is_made_twice_or_in_whatever_namespace_is_the_current_one(values: str) -> None:
    places = [
        (one["kind"], one["metadata"].get("namespace"), one["metadata"]["name"])
        for one in render(values).objects
    ]
    assert len(places) == len(set(places))
    assert all((namespace is None) == (kind in OF_THE_CLUSTER) for kind, namespace, _ in places)


@every_values_file
def test_render_is_the_one_that_was_read(values: str) -> None:
    objects = [_without_secrets(one) for one in render(values).objects]
    text = yaml.safe_dump_all(objects, sort_keys=False, width=110)
    check_file(GOLDEN / "helm" / f"{values}.yaml", text)


@pytest.mark.parametrize(
    "setting, complaint",
    [
        ("api.replicas=1", "/api/replicas"),
        ("controllers.replicas=0", "/controllers/replicas"),
        ("sshProxy.url=proxy.example.org", "/sshProxy/url"),
        ("image.tag=latest", "/image/tag"),
        ("postgres.image=postgres", "/postgres/image"),
        ("postgres.image=postgres:latest", "/postgres/image"),
        ("postgres.writer=both", "/postgres/writer"),
        ("postgres.storage.size=100", "/postgres/storage/size"),
        ("postgres.enabled=false", "/externalDatabase/secret"),
        ("devServers.closedNetworks={10.0.0.1}", "/devServers/closedNetworks"),
        ("aws.allowedAccounts={12}", "/aws/allowedAccounts"),
        ("replicas=3", "'replicas' not allowed"),
        ("api.repliccas=3", "'repliccas' not allowed"),
    ],
)
def test_wrong_value_is_refused_by_name(setting: str, complaint: str) -> None:
    with pytest.raises(HelmRefused, match=re.escape(complaint)):
        render("", (setting,))


def test_chart_is_for_this_version() -> None:
    from gpudev import __version__  # noqa: PLC0415 - beside its only use

    chart = yaml.safe_load((CHART / "Chart.yaml").read_text(encoding="utf-8"))
    assert chart["appVersion"] == __version__


def _without_secrets(one: Manifest) -> Manifest:
    """Passwords are random, so a render that was read has none of them."""
    if one["kind"] != "Secret":
        return one
    return one | {"data": dict.fromkeys(one["data"], "...")}
