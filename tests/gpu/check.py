"""Shows that a reservation really holds a GPU: run it on a machine with NVIDIA GPUs and PyTorch.

    python -m tests.gpu.check --python /path/to/python-with-torch

Starts gpu-dev with `--fleet detect`, reserves every GPU of a node, logs in over SSH with the reservation's
host key, runs `nvidia-smi` and a matrix product there, asks for one more GPU and sees it wait, and gives
the first back. It speaks SSH by itself (asyncssh), so no OpenSSH client is needed. Prints Markdown.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import asyncssh

PRODUCT = """\
import os, time, torch
device = torch.device("cuda")
a = torch.randn(8192, 8192, device=device, dtype=torch.bfloat16)
(a @ a).sum().item()
started = time.perf_counter()
for _ in range(20):
    b = a @ a
torch.cuda.synchronize()
seconds = time.perf_counter() - started
print("visible:", os.environ["CUDA_VISIBLE_DEVICES"])
print("torch sees", torch.cuda.device_count(), "GPU:", torch.cuda.get_device_name())
print(f"20 products of 8192 x 8192 bf16: {seconds:.3f} s, {20 * 2 * 8192**3 / seconds / 1e12:.0f} TFLOP/s")
exact = torch.ones(256, 256, device=device) @ torch.ones(256, 256, device=device)
print("ones @ ones is 256 everywhere:", bool((exact == 256).all()))
"""


class Machine:
    def __init__(self, home: Path, isolation: str, read_only_paths: str) -> None:
        self.home = home
        self.environment = {
            **os.environ,
            "HOME": str(home),
            "GPU_DEV_ISOLATION": isolation,
            "GPU_DEV_READ_ONLY_PATHS": read_only_paths,
            "NO_COLOR": "1",
        }

    def run(self, *arguments: str) -> str:
        print(f"$ gpu-dev {' '.join(arguments)}")
        command = [sys.executable, "-m", "gpudev.cli.main", *arguments]
        done = subprocess.run(command, env=self.environment, capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(f"{done.stdout}{done.stderr}")
        return done.stdout

    def say(self, *arguments: str) -> None:
        print(self.run(*arguments).rstrip())

    def show(self, reservation: str) -> dict[str, Any]:
        command = [sys.executable, "-m", "gpudev.cli.main", "show", reservation, "--json"]
        done = subprocess.run(command, env=self.environment, capture_output=True, text=True, check=True)
        job: dict[str, Any] = json.loads(done.stdout)
        return job


async def ssh(machine: Machine, reservation: str, command: str, stdin: str = "") -> None:
    """One command over SSH, with strict checking of the host key that the reservation names."""
    job = machine.show(reservation)
    known_hosts = asyncssh.import_known_hosts("\n".join(job["ssh_host_keys"]) + "\n")
    key = machine.home / ".ssh" / "id_ed25519"
    async with asyncssh.connect(
        job["node_ip"], job["node_port"], username="dev", client_keys=[key], known_hosts=known_hosts
    ) as connection:
        print(f"$ {job['ssh_command']} {command}")
        done = await connection.run(command, input=stdin)
        print(f"{done.stdout}{done.stderr}".rstrip())
        if done.exit_status:
            raise SystemExit(f"it ended with {done.exit_status}")


def wait_for_status(machine: Machine, reservation: str, status: str) -> float:
    started = time.monotonic()
    while machine.show(reservation)["status"] != status:
        if time.monotonic() - started > 60:
            raise SystemExit(f"{reservation} is not {status}")
    return time.monotonic() - started


async def check(python: str, isolation: str, read_only_paths: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        machine = Machine(Path(folder), isolation, read_only_paths)
        make_key(machine.home)
        print(f"\n## Isolation: {isolation or 'as found'}\n\n```")
        machine.say("up", "--detach", "--state-dir", f"{folder}/state", "--fleet", "detect")
        try:
            await _check(machine, python)
        finally:
            machine.say("down", "--yes", "--state-dir", f"{folder}/state")
        print("```")


async def _check(machine: Machine, python: str) -> None:
    machine.say("status")
    machine.say("avail")
    machine.say("reserve", "--gpus", "1", "--hours", "1", "--yes", "--name", "with-gpu")
    await ssh(machine, "with-gpu", "whoami; pwd; echo $CUDA_VISIBLE_DEVICES; ls /dev | grep nvidia")
    await ssh(machine, "with-gpu", "nvidia-smi")
    await ssh(machine, "with-gpu", f"{python} -", stdin=PRODUCT)
    machine.say("reserve", "--gpus", "1", "--hours", "1", "--yes", "--name", "behind-it", "--no-wait")
    wait_for_status(machine, "behind-it", "queued")
    machine.say("show", "behind-it")
    machine.say("cancel", "with-gpu", "--yes")
    wait_for_status(machine, "behind-it", "active")
    await ssh(machine, "behind-it", "nvidia-smi --query-gpu=name,uuid,memory.used --format=csv")
    machine.say("list")


def make_key(home: Path) -> None:
    key = asyncssh.generate_private_key("ssh-ed25519", comment="gpu-check")
    (home / ".ssh").mkdir(mode=0o700)
    key.write_private_key(home / ".ssh" / "id_ed25519")
    key.write_public_key(home / ".ssh" / "id_ed25519.pub")


def main() -> None:
    parser = argparse.ArgumentParser(description="Show that a reservation really holds a GPU.")
    parser.add_argument("--python", default="python3", help="an interpreter with PyTorch, on the dev server")
    parser.add_argument("--isolation", action="append", choices=["none", "bubblewrap"])
    parser.add_argument("--read-only-paths", default="", help="folders that dev servers may read")
    options = parser.parse_args()
    for isolation in options.isolation or [""]:
        asyncio.run(check(options.python, isolation, options.read_only_paths))


if __name__ == "__main__":
    main()
