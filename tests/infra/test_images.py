"""The images and the scripts around them: pinned, not root, and clean shell."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from gpudev.settings import GROUPS
from tests.support.infra.chart import CHART, render
from tests.support.infra.programs import get_shellcheck

DEPLOY = CHART.parents[1]
DOCKERFILES = sorted(DEPLOY.glob("images/*/Dockerfile"))
SCRIPTS = sorted(DEPLOY.rglob("*.sh"))
PINNED = re.compile(r"^[\w./-]+:[\w.-]*\d[\w.-]*$")


def instructions(dockerfile: Path) -> list[tuple[str, str]]:
    text = re.sub(r"\\\n\s*", " ", dockerfile.read_text(encoding="utf-8"))
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return [(word, rest) for word, _, rest in (line.partition(" ") for line in lines)]


@pytest.mark.parametrize("dockerfile", DOCKERFILES, ids=lambda file: file.parent.name)
def test_base_is_pinned(dockerfile: Path) -> None:
    bases = [rest.split()[0] for word, rest in instructions(dockerfile) if word == "FROM"]
    assert bases
    assert all(PINNED.match(base) for base in bases)


def test_control_plane_runs_as_the_user_that_the_chart_expects() -> None:
    users = [
        rest for word, rest in instructions(DEPLOY / "images/control-plane/Dockerfile") if word == "USER"
    ]
    (pod,) = (pod for pod in render("generic").pods if pod.owner == "Deployment/api-service")
    context = pod.spec["securityContext"]
    assert users == [f"{context['runAsUser']}:{context['runAsGroup']}"]


def test_dev_server_is_made_of_the_image_that_is_the_default() -> None:
    fields = {
        str(field.validation_alias): field.default
        for group in GROUPS
        for field in group.model_fields.values()
    }
    ((_, base),) = [one for one in instructions(DEPLOY / "images/dev-server/Dockerfile") if one[0] == "FROM"]
    assert base == f"docker.io/{fields['GPU_DEV_CONTAINER_IMAGE']}"


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda file: file.name)
def test_shell_is_clean(script: Path) -> None:
    done = subprocess.run([get_shellcheck(), str(script)], capture_output=True, text=True, check=False)
    assert done.stdout == ""
