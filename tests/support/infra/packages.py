"""Programs out of Debian's packages, which are fetched once and not installed."""

from __future__ import annotations

import os
import subprocess
from functools import cache
from pathlib import Path

from tests.support.kubernetes.cache import cache_folder, unfinished
from tests.support.kubernetes.progress import step


@cache
def find_program(package: str, program: str) -> str:
    place = cache_folder("infra") / f"{package}-debian"
    if not place.exists():
        with step(f"Fetching {package}"), unfinished(place) as made:
            subprocess.run(
                ["dpkg-deb", "--extract", _fetch_package(package, made.parent), str(made)], check=True
            )
    return str(place / "usr" / "bin" / program)


def _fetch_package(package: str, folder: Path) -> str:
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    download = ["apt-get", "download", "--quiet=2", package]
    for prepare in ([], ["apt-get", "update", "--quiet=2"]):
        if prepare:
            subprocess.run(prepare, env=environment, check=True)
        if subprocess.run(download, cwd=folder, env=environment, check=False).returncode == 0:
            (found,) = folder.glob(f"{package}_*.deb")
            return str(found)
    raise LookupError(f"apt has no package {package}.")
