"""What `.ci/run` says about its tiers, and that nothing of a tier outlives it."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

CI = Path(__file__).parent.parent.parent / ".ci"
BUDGETS = tomllib.loads((CI / "budgets.toml").read_text())
BURN = "import time\nwhile time.process_time() < 0.5: pass"
DAEMON = """
import os, subprocess, sys
read, write = os.pipe()
if os.fork() == 0:
    os.setsid()
    subprocess.Popen([sys.executable, "-c", sys.argv[1]], stdout=write)
    os._exit(0)
os.close(write)
os.wait()
os.read(read, 1)
"""
"""Starts a program that it is not the parent of, and waits for its first word or its end."""
SLEEP = "import os, sys, time\nos.write(1, b'.')\nsys.stdin.close()\ntime.sleep(1000)"


def run_tier(report: Path, *command: str) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, str(CI / "tiers.py"), "run", str(report), "lint", *command]
    return subprocess.run(words, capture_output=True, text=True, timeout=240, check=False)


def read(report: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(report.read_text())
    return found


def tell(report: Path, seconds: int) -> list[str]:
    words = [sys.executable, str(CI / "tiers.py"), "tell", str(report), str(seconds)]
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout.splitlines()


def note(report: Path, tier: str, **measured: float) -> None:
    with report.open("a") as file:
        file.write(json.dumps({"tier": tier, "seconds": 1.0, "cpu": 1.0, "code": 0, **measured}) + "\n")


def test_cpu_of_what_left_its_parent_is_counted(tmp_path: Path) -> None:
    done = run_tier(tmp_path / "report", sys.executable, "-c", DAEMON, BURN)
    assert done.returncode == 0, done.stderr
    assert read(tmp_path / "report")["cpu"] >= 0.4


def test_what_is_left_is_ended(tmp_path: Path) -> None:
    done = run_tier(tmp_path / "report", sys.executable, "-c", DAEMON, SLEEP)
    assert "1 processes were left and ended" in done.stdout


ORPHAN = """
import os, time
read, write = os.pipe()
if os.fork() == 0:
    if os.fork() == 0:
        os.write(write, str(os.getpid()).encode())
    os._exit(0)
os.wait()
orphan = os.read(read, 100).decode()
deadline = time.monotonic() + 20
while os.path.exists(f"/proc/{orphan}"):
    assert time.monotonic() < deadline, "it has ended, and nobody took note"
"""


def test_what_ends_without_a_parent_is_gone_at_once(tmp_path: Path) -> None:
    """Tests wait for processes to be gone, which one that nobody has waited for is not."""
    done = run_tier(tmp_path / "report", sys.executable, "-c", ORPHAN)
    assert done.returncode == 0, done.stderr
    assert "were left" not in done.stdout


def test_its_exit_code_is_that_of_the_command(tmp_path: Path) -> None:
    assert run_tier(tmp_path / "report", sys.executable, "-c", "raise SystemExit(3)").returncode == 3
    assert read(tmp_path / "report")["code"] == 3


def test_a_command_that_ends_at_once_has_an_exit_code_too(tmp_path: Path) -> None:
    assert [run_tier(tmp_path / "report", "false").returncode for _ in range(5)] == [1] * 5
    assert len((tmp_path / "report").read_text().splitlines()) == 5


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=str)
def test_nothing_outlives_a_tier_that_is_interrupted(tmp_path: Path, number: signal.Signals) -> None:
    started = tmp_path / "started"
    os.mkfifo(started)
    # The program that left its parent keeps the pipe open until it ends.
    script = f"import time; f = open({str(started)!r}, 'w'); print('.', file=f, flush=True); time.sleep(99)"
    words = [sys.executable, str(CI / "tiers.py"), "run", str(tmp_path / "report"), "lint"]
    process = subprocess.Popen([*words, sys.executable, "-c", DAEMON, script], stdout=subprocess.DEVNULL)
    with started.open() as pipe:
        assert pipe.readline() == ".\n"
        process.send_signal(number)
        assert process.wait(240) == 128 + number
        assert pipe.read() == "", "whoever had the other end is gone"


def test_what_is_over_its_budget_is_marked(tmp_path: Path) -> None:
    report = tmp_path / "report"
    note(report, "lint")
    note(report, "bare", cpu=BUDGETS["tiers"]["bare"]["cpu"] + 1)
    note(report, "cluster", seconds=BUDGETS["tiers"]["cluster"]["seconds"] + 1, code=1)
    note(report, "unheard-of")
    _, lint, bare, cluster, unknown, everything = tell(report, BUDGETS["total"]["warm_seconds"] + 1)
    assert "BUDGET" not in lint
    assert bare.endswith("OVER BUDGET (cpu)")
    assert cluster.endswith("FAILED (1) OVER BUDGET (seconds)")
    assert unknown.endswith("NO BUDGET")
    assert everything.endswith("warm caches OVER BUDGET (seconds)")


def test_a_run_that_compiled_may_take_longer(tmp_path: Path) -> None:
    note(tmp_path / "report", "kubernetes", seconds=900)
    assert tell(tmp_path / "report", BUDGETS["total"]["seconds"])[-1].endswith("cold caches")


def test_every_tier_has_a_budget() -> None:
    started = re.findall(r"^\s*(?:tier|start) ([a-z][a-z-]*) ", (CI / "run").read_text(), re.MULTILINE)
    assert sorted(started) == sorted(BUDGETS["tiers"])
