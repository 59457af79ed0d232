"""Alerts fire when they should and not otherwise, as Prometheus' own test of rules judges."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
import yaml

from tests.support.infra.chart import render
from tests.support.infra.packages import find_program

CASES = Path(__file__).with_name("alerts.test.yaml")


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    """The rules of the chart as Prometheus reads them, and the cases beside them."""
    spec = render("aws").get("PrometheusRule", "gpu-dev")["spec"]
    (tmp_path / "alerts.rules.yaml").write_text(yaml.safe_dump(spec))
    (tmp_path / CASES.name).write_text(CASES.read_text(encoding="utf-8"))
    return tmp_path


def promtool(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [find_program("prometheus", "promtool"), *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_every_alert_has_a_case_in_which_it_fires_and_one_in_which_it_does_not() -> None:
    (group,) = render("aws").get("PrometheusRule", "gpu-dev")["spec"]["groups"]
    cases = [
        (case["alertname"], bool(case["exp_alerts"]))
        for test in yaml.safe_load(CASES.read_text(encoding="utf-8"))["tests"]
        for case in test["alert_rule_test"]
    ]
    assert set(cases) == {(rule["alert"], fires) for rule in group["rules"] for fires in (True, False)}


def test_alerts_fire_when_they_should(rules: Path) -> None:
    done = promtool(rules, "test", "rules", CASES.name)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_wrong_expectation_is_noticed(rules: Path) -> None:
    cases = rules / CASES.name
    cases.write_text(cases.read_text().replace("'0+2x30'", "'0+0x30'"))
    assert promtool(rules, "test", "rules", CASES.name).returncode != 0
