"""Shows that a busy GPU keeps its reservation and an idle one loses it: for a machine with NVIDIA GPUs.

    python -m tests.gpu.idle_check --python /path/to/python-with-torch

Starts gpu-dev with real GPUs and an idle limit of a minute, reserves one, leaves it alone until it is warned,
runs a matrix product on it for longer than the limit, sees it kept, leaves it alone again, and sees it warned
and ended. Prints what was shown, and its events with the figures of NVML, as Markdown.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from pathlib import Path

from tests.gpu.check import Machine, make_key, ssh

_BUSY_SECONDS = 150
_LOOK_SECONDS = 15
"""Longer than PyTorch takes to load, so that the first look at the busy server sees its GPU busy."""
_PATIENCE_SECONDS = 300
_WORK = """
import time, torch
a = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
end = time.monotonic() + {seconds}
while time.monotonic() < end:
    for _ in range(50):
        b = a @ a
    torch.cuda.synchronize()
print("done")
"""
_LIMITS = {
    "GPU_DEV_IDLE_MINUTES": "1",
    "GPU_DEV_IDLE_COUNTDOWN_MINUTES": "0.5",
    "GPU_DEV_USAGE_SECONDS": f"{_LOOK_SECONDS}",
}


async def check(python: str, isolation: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        machine = Machine(Path(folder), isolation, "")
        machine.environment.update(_LIMITS)
        make_key(machine.home)
        print("```")
        machine.say("up", "--detach", "--state-dir", f"{folder}/state", "--fleet", "detect")
        try:
            machine.say("reserve", "--gpus", "1", "--hours", "1", "--yes", "--name", "idle-check")
            _wait_for_warning(machine)
            # Detached: a connection that stays open would be a reason to keep it by itself.
            script = _WORK.format(seconds=_BUSY_SECONDS)
            await ssh(machine, "idle-check", "cat > work.py", stdin=script)
            await ssh(
                machine, "idle-check", f"nohup {python} work.py >work.log 2>&1 </dev/null & echo started"
            )
            _expect_active(machine, _BUSY_SECONDS - 40)
            _wait_for_end(machine)
        finally:
            machine.say("show", "idle-check")
            machine.say("why", "idle-check")
            machine.say("down", "--yes", "--state-dir", f"{folder}/state")
        print("```")


def _wait_for_warning(machine: Machine) -> None:
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while "Nobody uses" not in (warning := machine.show("idle-check").get("warning", "")):
        if time.monotonic() > deadline:
            raise SystemExit("An idle GPU was not warned.")
        time.sleep(2)
    print(f"warned: {warning}")


def _expect_active(machine: Machine, seconds: float) -> None:
    # A look or two until the warning is taken back.
    time.sleep(_LOOK_SECONDS * 3)
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        job = machine.show("idle-check")
        if job["status"] != "active" or "Nobody uses" in job.get("warning", ""):
            raise SystemExit(f"A busy GPU was not kept: {job}")
        time.sleep(5)
    machine.say("show", "idle-check")


def _wait_for_end(machine: Machine) -> None:
    deadline = time.monotonic() + _PATIENCE_SECONDS
    _wait_for_warning(machine)
    while (job := machine.show("idle-check"))["status"] == "active":
        if time.monotonic() > deadline:
            raise SystemExit(f"An idle GPU was not given up: {job}")
        time.sleep(2)
    if job["reason"] != "went_idle":
        raise SystemExit(f"It ended otherwise: {job}")


def main() -> None:
    parser = argparse.ArgumentParser(description="Show that a busy GPU is kept and an idle one given up.")
    parser.add_argument("--python", default="python3", help="an interpreter with PyTorch, on the dev server")
    parser.add_argument("--isolation", default="", choices=["", "none", "bubblewrap"])
    options = parser.parse_args()
    asyncio.run(check(options.python, options.isolation))


if __name__ == "__main__":
    main()
