"""`gpu-dev submit` before anything is reserved: what it shows, asks and refuses."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpudev.cli.render.manifest import format_manifest, format_size
from gpudev.client.manifest import Entry, LeftOut, Manifest
from tests.unit.cli.conftest import GpuDev


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "train.py").write_text("x" * 1500)
    (folder / ".env").write_text("x")
    return folder


def test_a_dry_run_shows_what_would_be_sent_and_needs_no_server(gpu_dev: GpuDev, project: Path) -> None:
    shown = gpu_dev("submit", "--dry-run", "-C", str(project), "true")
    assert (shown.code, shown.out) == (0, "")
    assert shown.err.splitlines() == [
        f"{project}: 1 file, 1.5 kB to send.",
        "Largest files:",
        "   1.5 kB  train.py",
        "Left out:",
        "  environment file  .env",
        "Send one of these all the same with: --include PATTERN",
    ]


def test_much_is_not_sent_where_nobody_can_be_asked(gpu_dev: GpuDev, project: Path) -> None:
    with (project / "big").open("wb") as big:
        big.truncate(1_000_000_001)
    refused = gpu_dev("submit", "-C", str(project), "true")
    assert refused.code == 2
    assert "1 GB is more than 1 GB" in refused.err
    assert "--yes" in refused.err


def test_a_home_is_refused(gpu_dev: GpuDev, home: Path) -> None:
    refused = gpu_dev("submit", "--dry-run", "-C", str(home), "true")
    assert (refused.code, "--allow-home" in refused.err) == (2, True)
    assert gpu_dev("submit", "--dry-run", "--allow-home", "-C", str(home), "true").code == 0


@pytest.mark.parametrize("grace", ["0s", "26m", "soon"])
def test_a_grace_that_cannot_be_is_refused(gpu_dev: GpuDev, project: Path, grace: str) -> None:
    assert gpu_dev("submit", "--grace", grace, "--dry-run", "-C", str(project), "true").code == 2


def test_every_secret_is_named_and_of_the_rest_a_few() -> None:
    secrets = tuple(LeftOut(f".env.{number}", "environment file") for number in range(20))
    ignored = tuple(LeftOut(f"{number}.log", ".gitignore") for number in range(20))
    manifest = Manifest(Path("/p"), (Entry("a\x1b[2J\udcff", 3),), ignored + secrets)
    text = format_manifest(manifest)
    assert all(one.path in text for one in secrets)
    assert ".gitignore        and 15 more" in text
    assert "      3 B  a\\x1b[2J\\udcff" in text
    assert "19.log" in format_manifest(manifest, whole=True)


@pytest.mark.parametrize(
    "size, text", [(0, "0 B"), (999, "999 B"), (1000, "1 kB"), (2_340_000, "2.3 MB"), (5e13, "50 TB")]
)
def test_sizes_are_short(size: float, text: str) -> None:
    assert format_size(size) == text
