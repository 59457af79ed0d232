"""Every query of every dashboard has an answer: from a real Prometheus that reads our real metrics."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.support.infra.chart import CHART
from tests.support.infra.prometheus import Prometheus, exposed, running_prometheus
from tests.support.machine import Machine, running_machine, wait_for

DASHBOARDS = sorted((CHART / "files" / "dashboards").glob("*.json"))
DCGM = "".join(
    f'{name}{{gpu="{gpu}",Hostname="node-a"}} {value}\n'
    for name, value in {
        "DCGM_FI_DEV_GPU_UTIL": 50,
        "DCGM_FI_DEV_FB_USED": 1024,
        "DCGM_FI_DEV_GPU_TEMP": 60,
        "DCGM_FI_DEV_POWER_USAGE": 300,
    }.items()
    for gpu in range(2)
)
"""In the words of DCGM's exporter, which needs GPUs; the figures are invented."""


@pytest.fixture(scope="module")
def machine() -> Iterator[Machine]:
    """With something to show: a reservation, one that waits, and a connection through the SSH proxy."""
    ports = {name: str(free_port()) for name in ("GPU_DEV_SSH_PROXY_PORT", "GPU_DEV_METRICS_PORT")}
    with running_machine("--fleet", "test", **ports) as running:
        reservation = running.reserve("-t", "t4", "-g", "4")
        running.reserve("-t", "t4", "-g", "4")
        running.submit("-t", "t4", "-g", "4")
        assert running.ssh(reservation, "true").returncode == 0
        yield running
        running.run("cancel", "--all", "--yes")


@pytest.fixture(scope="module")
def prometheus(machine: Machine) -> Iterator[Prometheus]:
    with TemporaryDirectory(prefix="gpu-dev-prometheus-") as name, exposed(DCGM) as exporter:
        ours = f"127.0.0.1:{machine.settings['GPU_DEV_METRICS_PORT']}"
        targets = {"gpu-dev-metrics": (ours, {"app": "api-service"}), "dcgm": (exporter, {})}
        with running_prometheus(Path(name), targets) as running:
            # A rate wants two readings.
            wait_for(
                lambda: running.query('min(count_over_time(up{job="gpu-dev-metrics"}[5m])) > 2'), "readings"
            )
            yield running


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])


def queries() -> Iterator[tuple[str, str]]:
    for file in DASHBOARDS:
        for panel in json.loads(file.read_text(encoding="utf-8"))["panels"]:
            for target in panel["targets"]:
                yield f"{file.stem}-{panel['title']}", target["expr"]


@pytest.mark.parametrize("query", [pytest.param(text, id=name) for name, text in queries()])
def test_query_has_an_answer(prometheus: Prometheus, query: str) -> None:
    assert wait_for(lambda: prometheus.query(query), f"an answer to {query}")


def test_the_figures_are_those_of_the_cluster(machine: Machine, prometheus: Prometheus) -> None:
    def read(query: str) -> float:
        (found,) = prometheus.query(query)
        return float(found["value"][1])

    wait_for(lambda: read('gpu_dev_queued_gpus{gpu_type="t4"}') == 4, "the queue to be seen")
    assert read('gpu_dev_gpus{gpu_type="t4", state="total"}') == 8
    assert read('gpu_dev_gpus{gpu_type="t4", state="available"}') == 0
    assert read('gpu_dev_reservations{status="active"}') == 2
