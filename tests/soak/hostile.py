"""Somebody who attacks from inside dev servers and with a key of their own, at random, until told to stop.

What an attack achieves is not judged here: the test judges what honest users notice of it.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import random
import subprocess
import threading
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import asyncpg

from tests.soak.people import Person

GPU_TYPE = "a10g"
"""Not that of honest users: who waits for GPUs that others reserved is not under attack."""

INSIDE = (
    "process-name",
    "deep-tree",
    "forks",
    "ports",
    "files",
    "nvidia-smi",
    "notices",
    "links",
    "bad-logins",
    "silent-connections",
    "large-body",
)
POISON = ('{"foo": 1}', '{"reservation_id": "00000000-0000-4000-8000-000000000000"}', '"x"', "[]", "null")
QUEUES = ("gpu_reservations", "disk_operations")
ODD_BODIES = (
    b'{"gpu_type": "a10g", "gpu_count": 1, "duration_hours": 1, "name": "\\ud800"}',
    b"[" * 20_000,
    b'{"gpu_type": "\\u0000", "gpu_count": 1e400, "duration_hours": NaN}',
    b"\xff\xfe",
    b"{" + b'"a": 1,' * 50_000 + b'"b": 2}',
)
ODD_ADDRESSES = (
    "https://hooks.example.org/\u00e9",
    "https://hooks.example.org/\x01",
    "https://[::1",
    "x:\ud800",
)
_SSH_SECONDS = 30


@dataclass
class Attacker:
    person: Person
    dsn: str
    script: Path
    ssh_key: Path
    chance: random.Random
    stop: threading.Event
    done: Counter[str] = field(default_factory=Counter)
    failed: Counter[str] = field(default_factory=Counter)

    def run(self) -> None:
        outside: dict[str, Callable[[], None]] = {
            "poison": self._poison,
            "odd-body": self._send_odd_body,
            "odd-address": self._choose_odd_address,
            "odd-reason": self._keep_for_an_odd_reason,
            "submit-flood": self._flood,
            "invalid-keys": self._try_invalid_keys,
        }
        server = self._reserve()
        while not self.stop.is_set():
            name = self.chance.choice([*INSIDE, *outside])
            self.done[name] += 1
            try:
                outside[name]() if name in outside else self._attack_inside(server, name)
                if self.chance.random() < 0.2 or not server:
                    # Its trees, links and pipes have to be removed now.
                    self.person.cancel(server)
                    server = self._reserve()
            except (OSError, http.client.HTTPException, subprocess.SubprocessError, ValueError) as error:
                self.failed[f"{name}: {type(error).__name__}"] += 1
                server = server or self._reserve()

    def _reserve(self) -> str:
        """Empty where none could be had in time."""
        with suppress(OSError, http.client.HTTPException, ValueError):
            job = self.person.submit(GPU_TYPE)
            if self.person.wait_until_active(job, self.stop):
                return job
            self.person.cancel(job)
        return ""

    def _attack_inside(self, server: str, name: str) -> None:
        job = self.person.call("GET", f"/v1/jobs/{server}")
        if not isinstance(job, dict) or not job.get("node_port"):
            return
        address = ["-p", str(job["node_port"]), f"dev@{job['node_ip']}"]
        known = [
            "-o",
            "StrictHostKeyChecking=no",
            "-o",
            "UserKnownHostsFile=/dev/null",
            "-o",
            "LogLevel=ERROR",
        ]
        command = ["ssh", "-F", "none", "-i", str(self.ssh_key), *known, *address, "sh", "-s", "--", name]
        with self.script.open("rb") as script:
            subprocess.run(
                [*command, str(self.person.port)],
                stdin=script,
                capture_output=True,
                timeout=_SSH_SECONDS,
                check=False,
            )

    def _poison(self) -> None:
        queue, content = self.chance.choice(QUEUES), self.chance.choice(POISON)
        asyncio.run(_send_message(self.dsn, queue, content))

    def _send_odd_body(self) -> None:
        paths = ("/v1/jobs/submit", "/v1/jobs/preview", "/v1/me/notifications", "/v1/auth/aws-login")
        self.person.send("POST", self.chance.choice(paths), self.chance.choice(ODD_BODIES))

    def _choose_odd_address(self) -> None:
        self.person.call("PUT", "/v1/me/notifications", {"url": self.chance.choice(ODD_ADDRESSES)})
        self.person.call("POST", "/v1/me/notifications/test")

    def _keep_for_an_odd_reason(self) -> None:
        for job in self.person.list_jobs()[:1]:
            reason = self.chance.choice(("\x1b[2J", "\x00", "x" * 2_000_000, "\ud800"))
            self.person.call("POST", f"/v1/jobs/{job}/keep", {"hours": 1, "reason": reason})

    def _flood(self) -> None:
        """Until the quota says no; then everything is cancelled, so that the next flood has room."""
        for _ in range(60):
            answer = self.person.call("POST", "/v1/jobs/submit", self.person.request(GPU_TYPE, hours=24))
            if "job_id" not in answer:
                break
        for job in self.person.list_jobs():
            self.person.cancel(job)

    def _try_invalid_keys(self) -> None:
        for number in range(20):
            Person(self.person.port, f"invalid-{number}").call("GET", "/v1/jobs")


async def _send_message(dsn: str, queue: str, content: str) -> None:
    connection = await asyncpg.connect(dsn)
    try:
        with suppress(asyncpg.PostgresError):
            await connection.execute("SELECT pgmq.send($1, $2::jsonb)", queue, content)
    finally:
        await connection.close()


def describe(attackers: list[Attacker]) -> str:
    done = sum((one.done for one in attackers), Counter[str]())
    failed = sum((one.failed for one in attackers), Counter[str]())
    return json.dumps({"attacks": dict(done), "could not attack": dict(failed)}, indent=2)
