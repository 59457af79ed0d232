"""Alerts and dashboards speak of metrics that we really have, and every alert has its runbook."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from prometheus_client import REGISTRY

import gpudev.telemetry  # noqa: F401 - it registers the metrics
from tests.support.infra.chart import CHART, render

RUNBOOKS = Path(__file__).parents[2] / "docs" / "howto" / "runbooks.md"
DASHBOARDS = sorted((CHART / "files" / "dashboards").glob("*.json"))
ALERTS = yaml.safe_load((CHART / "files" / "alerts.yaml").read_text(encoding="utf-8"))
OURS = re.compile(r"\bgpu_dev_\w+")
SUFFIXES = {"counter": ("_total",), "histogram": ("_bucket", "_count", "_sum"), "gauge": ("",)}


def known_metrics() -> set[str]:
    return {
        metric.name + suffix
        for metric in REGISTRY.collect()
        if metric.name.startswith("gpu_dev_")
        for suffix in SUFFIXES[metric.type]
    }


def expressions() -> Iterator[tuple[str, str]]:
    for alert in ALERTS:
        yield alert["alert"], alert["expr"]
    for file in DASHBOARDS:
        for panel in json.loads(file.read_text(encoding="utf-8"))["panels"]:
            for target in panel["targets"]:
                yield f"{file.stem}-{panel['title']}", target["expr"]


@pytest.mark.parametrize("expression", [pytest.param(text, id=name) for name, text in expressions()])
def test_metric_is_one_of_ours_or_of_those_around_us(expression: str) -> None:
    ours = set(OURS.findall(expression))
    assert ours <= known_metrics()
    assert ours or "DCGM_" in expression or "up{" in expression


def test_every_alert_has_a_runbook_and_every_runbook_an_alert() -> None:
    sections = re.findall(r"^## (\w+)$", RUNBOOKS.read_text(encoding="utf-8"), re.MULTILINE)
    assert sections == [alert["alert"] for alert in ALERTS]


def test_alerts_and_dashboards_are_in_the_chart_as_they_are() -> None:
    rendering = render("aws")
    ((group),) = rendering.get("PrometheusRule", "gpu-dev")["spec"]["groups"]
    assert group["rules"] == ALERTS
    given = rendering.get("ConfigMap", "gpu-dev-dashboards")["data"]
    assert given == {file.name: file.read_text(encoding="utf-8") for file in DASHBOARDS}


def test_prometheus_finds_every_pod_that_has_metrics() -> None:
    rendering = render("aws")
    service = rendering.get("Service", "gpu-dev-metrics")
    monitor = rendering.get("ServiceMonitor", "gpu-dev")["spec"]
    assert monitor["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
    serving = {pod.owner for pod in rendering.pods if "metrics" in {port["name"] for port in ports(pod.spec)}}
    labelled = {pod.owner for pod in rendering.pods if pod.labels.get("gpu-dev/metrics") == "true"}
    wanted = {f"Deployment/{name}" for name in ("api-service", "job-processor", "ssh-proxy")}
    assert serving == labelled == wanted


def ports(spec: dict[str, list[dict[str, list[dict[str, str]]]]]) -> list[dict[str, str]]:
    return [port for container in spec["containers"] for port in container.get("ports", ())]


@pytest.mark.parametrize("file", DASHBOARDS, ids=lambda file: file.stem)
def test_panels_do_not_lie_on_each_other(file: Path) -> None:
    panels = json.loads(file.read_text(encoding="utf-8"))["panels"]
    places = {(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in panels}
    assert len(places) == len(panels) == len({panel["id"] for panel in panels})
