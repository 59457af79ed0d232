"""checkov over everything that is deployed: findings are put right, or kept for a reason that is written."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.infra.chart import CHART, VALUES, render
from tests.support.kubernetes.cache import cache_folder, unfinished
from tests.support.kubernetes.progress import step

DEPLOY = CHART.parents[1]
VERSION = "3.3.30"
ACCEPTED: dict[str, dict[str, str]] = yaml.safe_load(
    (DEPLOY / "checkov-accepted.yaml").read_text(encoding="utf-8")
)


@cache
def get_python() -> str:
    """Of an environment of its own: checkov pins half of what we use to other versions."""
    place = cache_folder("infra") / f"checkov-{VERSION}"
    if not place.exists():
        with step("Installing checkov"), unfinished(place) as made:
            subprocess.run([sys.executable, "-m", "venv", str(made)], check=True)
            pip = [str(made / "bin" / "python"), "-m", "pip", "install", "--quiet"]
            subprocess.run([*pip, "--disable-pip-version-check", f"checkov=={VERSION}"], check=True)
    return str(place / "bin" / "python")


def run_checkov(framework: str, *places: str) -> set[str]:
    """The checks that something fails."""
    flags = ["--framework", framework, "--quiet", "--compact", "--output", "json", "--skip-download"]
    command = [get_python(), "-m", "checkov.main", *places, *flags]
    done = subprocess.run(command, cwd=DEPLOY, capture_output=True, text=True, check=False)
    report: dict[str, Any] = json.loads(done.stdout)
    assert report["check_type"] == framework, done.stderr
    assert report["summary"]["passed"] > 0
    assert report["summary"]["parsing_errors"] == 0
    return {found["check_id"] for found in report["results"]["failed_checks"]}


@pytest.mark.parametrize("framework", ["dockerfile", "terraform"])
def test_findings_in_files_are_those_with_a_reason(framework: str) -> None:
    assert run_checkov(framework, "--directory", str(DEPLOY)) == set(ACCEPTED[framework])


def test_findings_in_the_chart_are_those_with_a_reason(tmp_path: Path) -> None:
    for values in VALUES:
        (tmp_path / f"{values}.yaml").write_text(render(values).text)
    assert run_checkov("kubernetes", "--directory", str(tmp_path)) == set(ACCEPTED["kubernetes"])
