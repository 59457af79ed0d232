"""The container images of the tests, made here and imported into each node, since there is no registry.

Their names begin with a host that cannot exist, so that no node ever looks for one elsewhere.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from tests.support.kubernetes.cache import cache_folder, unfinished
from tests.support.kubernetes.debian import find_mirror
from tests.support.kubernetes.oci import ImageConfig, write_archive
from tests.support.kubernetes.programs import get_program
from tests.support.kubernetes.progress import step

PACKAGES = ("bash", "openssh-server", "openssh-sftp-server", "procps", "sudo", "zsh")
_NOT_NEEDED = (
    "boot",
    "usr/share/doc",
    "usr/share/info",
    "usr/share/locale",
    "usr/share/man",
    "var/cache/apt",
    "var/cache/debconf",
    "var/lib/apt/lists",
)


@dataclass(frozen=True, slots=True)
class Image:
    name: str
    config: ImageConfig
    recipe: str
    """What it is made of; another recipe is another archive."""
    make_files: Callable[[Path], None]
    """Fills an empty folder with the file system of the image."""

    @property
    def archive(self) -> Path:
        short = self.name.rpartition("/")[2].partition(":")[0]
        digest = sha256(f"{self.name} {self.recipe} {self.config}".encode()).hexdigest()[:12]
        return cache_folder() / "images" / f"{short}-{digest}.tar"


def _copy_program(name: str) -> Callable[[Path], None]:
    def copy(root: Path) -> None:
        shutil.copy(get_program(name), root / name)

    return copy


def install_debian(root: Path, packages: Sequence[str]) -> None:
    """A small Debian with these packages, and nothing that no program reads."""
    mirror = find_mirror()
    # In mounts of its own: debootstrap mounts /proc below the folder, and may be interrupted.
    subprocess.run(
        [
            *("unshare", "--mount"),
            *("debootstrap", "--variant=minbase", f"--include={','.join(packages)}"),
            *(mirror.suite, str(root), mirror.address),
        ],
        stdout=subprocess.DEVNULL,
        check=True,
    )
    for path in _NOT_NEEDED:
        shutil.rmtree(root / path)
        (root / path).mkdir(parents=True)
    (root / "etc/resolv.conf").unlink(missing_ok=True)
    (root / "etc/hostname").unlink(missing_ok=True)


def _make_devserver(root: Path) -> None:
    install_debian(root, PACKAGES)
    for host_key in (root / "etc/ssh").glob("ssh_host_*"):
        # Every server makes its own, or is given them.
        host_key.unlink()


DEVSERVER = Image(
    "gpu-dev.test/devserver:1",
    ImageConfig(command=("/usr/sbin/sshd", "-D", "-e")),
    " ".join((*PACKAGES, *_NOT_NEEDED)),
    _make_devserver,
)
PAUSE = Image("gpu-dev.test/pause:1", ImageConfig(entrypoint=("/pause",)), "pause", _copy_program("pause"))
EXIT = Image("gpu-dev.test/exit:1", ImageConfig(entrypoint=("/exit",)), "exit", _copy_program("exit"))

IMAGES = (PAUSE, EXIT, DEVSERVER)


def build_images() -> tuple[Path, ...]:
    """The archives of all images; those that are not in the cache are made."""
    for image in IMAGES:
        if not image.archive.exists():
            _build(image)
    return tuple(image.archive for image in IMAGES)


def _build(image: Image) -> None:
    with step(f"Making image {image.name}"), unfinished(image.archive) as archive:
        root = archive.with_suffix(".root")
        root.mkdir(mode=0o755)
        image.make_files(root)
        layer = archive.with_suffix(".layer")
        pack(root, layer)
        write_archive(archive, {image.name: image.config}, layer)


def pack(root: Path, layer: Path) -> None:
    """All of a folder as one layer."""
    tar = ["tar", "--create", "--numeric-owner", "--sort=name", "--file", str(layer)]
    subprocess.run([*tar, "--directory", str(root), "."], env={**os.environ, "LC_ALL": "C"}, check=True)
