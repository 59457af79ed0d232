"""The image of the control plane as the test cluster has it: Debian's Python, our dependencies, our source.

Two layers. The lower one changes with the pinned dependencies alone, and is kept. The programs of PostgreSQL,
with TLS, are on the path as well: a second image of the same layers is that of the database.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from tests.support.infra.tls_postgres import get_tls_postgres, programs_in
from tests.support.kubernetes.cache import cache_folder, unfinished
from tests.support.kubernetes.images import install_debian, pack
from tests.support.kubernetes.oci import ImageConfig, write_archive
from tests.support.kubernetes.progress import step

REPOSITORY = "gpu-dev.test/control-plane"
POSTGRES = "gpu-dev.test/postgres:18"
_PACKAGES = ("ca-certificates", "python3")
_RECIPE = ("compiled", *_PACKAGES)
_DEPENDENCIES = "opt/gpu-dev/dependencies"
_SOURCE = "opt/gpu-dev/source"
_POSTGRES = Path("opt/postgres")
_USERS = "postgres:x:999:999::/tmp:/bin/sh\ngpu-dev:x:10001:10001::/tmp:/bin/sh\n"
"""As the chart runs them; PostgreSQL wants to know its own name."""

_CONFIG = ImageConfig(
    entrypoint=(
        *("/usr/bin/env", f"PYTHONPATH=/{_DEPENDENCIES}:/{_SOURCE}", "HOME=/tmp", "PYTHONUNBUFFERED=1"),
        *("/usr/bin/python3", "-P", "-m", "gpudev.cli.main"),
    )
)
_POSTGRES_CONFIG = ImageConfig(stop_signal="SIGINT")
"""As the image of PostgreSQL has it: by SIGTERM it would wait until everybody has gone."""


@dataclass(frozen=True, slots=True)
class ControlPlaneImage:
    tag: str
    checkout: Path
    """Of some commit: its source, and what it depends on."""

    @property
    def name(self) -> str:
        return f"{REPOSITORY}:{self.tag}"

    def write(self, folder: Path) -> Path:
        """The archive, made in this folder."""
        root, layer = folder / f"{self.tag}.root", folder / f"{self.tag}.layer"
        ignore = shutil.ignore_patterns("__pycache__")
        shutil.copytree(self.checkout / "src" / "gpudev", root / _SOURCE / "gpudev", ignore=ignore)
        _compile(root / _SOURCE)
        pack(root, layer)
        archive = folder / f"{self.tag}.tar"
        images = {self.name: _CONFIG, POSTGRES: _POSTGRES_CONFIG}
        write_archive(archive, images, _make_dependencies(self.checkout), layer)
        return archive


def _make_dependencies(checkout: Path) -> Path:
    """The lower layer; it is made once for each set of pins."""
    pins = (checkout / "constraints.txt").read_bytes() + repr(_describe(checkout)).encode()
    layer = cache_folder() / "images" / f"python-{sha256(pins).hexdigest()[:12]}.layer"
    if not layer.exists():
        with step("Making the dependencies of the control plane"), unfinished(layer) as made:
            root = made.with_suffix(".root")
            root.mkdir(mode=0o755)
            install_debian(root, _PACKAGES)
            _install_dependencies(root / _DEPENDENCIES, checkout)
            with (root / "etc/passwd").open("a", encoding="ascii") as users:
                users.write(_USERS)
            _install_postgres(root)
            pack(root, made)
    return layer


def _describe(checkout: Path) -> tuple[object, ...]:
    return _RECIPE, get_tls_postgres().name, _list_dependencies(checkout)


def _install_postgres(root: Path) -> None:
    shutil.copytree(get_tls_postgres(), root / _POSTGRES, symlinks=True)
    for program in programs_in(root / _POSTGRES).iterdir():
        (root / "usr/local/bin" / program.name).symlink_to(f"/{programs_in(_POSTGRES)}/{program.name}")


def _install_dependencies(folder: Path, checkout: Path) -> None:
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    pins = ["--constraint", str(checkout / "constraints.txt"), "--target", str(folder), "--no-compile"]
    subprocess.run([*pip, *pins, *_list_dependencies(checkout)], check=True)
    _compile(folder)


def _compile(folder: Path) -> None:
    """Nobody can write there later, and without it every start would compile everything."""
    compiler = [sys.executable, "-m", "compileall", "-q", "--invalidation-mode", "unchecked-hash"]
    # What a library ships for newer Pythons does not compile here, and nobody imports it.
    subprocess.run([*compiler, str(folder)], check=False, stdout=subprocess.DEVNULL)


def _list_dependencies(checkout: Path) -> list[str]:
    project = tomllib.loads((checkout / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    listed = [*project["dependencies"], *extras["server"], *extras["aws"]]
    # An extra that names another of ours by the project's name: pip would fetch somebody else's project.
    return [wanted for wanted in listed if not wanted.startswith(f"{project['name']}[")]
