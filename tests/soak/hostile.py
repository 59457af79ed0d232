"""Somebody who attacks from inside dev servers and with a key of their own, at random, until told to stop.

What honest users notice of an attack is judged by the test. Here is written down what each attack achieved:
an attack that never took place proves nothing.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import random
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path

import asyncpg

from tests.soak.people import PAUSE_SECONDS, Person, Stop

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
SSH_OPTIONS = ("StrictHostKeyChecking=no", "UserKnownHostsFile=/dev/null", "LogLevel=ERROR")
POISON = ('{"foo": 1}', '{"reservation_id": "00000000-0000-4000-8000-000000000000"}', '"x"', "[]", "null")
QUEUES = ("gpu_reservations", "disk_operations")
ODD_BODIES = (
    b'{"gpu_type": "a10g", "gpu_count": 1, "duration_hours": 1, "name": "\\ud800"}',
    b"[" * 20_000,
    b'{"gpu_type": "\\u0000", "gpu_count": 1e400, "duration_hours": NaN}',
    b"\xff\xfe",
    b"{" + b'"a": 1,' * 50_000 + b'"b": 2}',
)
BODY_ROUTES = (
    ("POST", "/v1/jobs/submit"),
    ("POST", "/v1/jobs/preview"),
    ("PUT", "/v1/me/notifications"),
    ("POST", "/v1/auth/aws-login"),
)
ODD_ADDRESSES = (
    "https://hooks.example.org/\u00e9",
    "https://hooks.example.org/\x01",
    "https://[::1",
    "x:\ud800",
)
_SSH_SECONDS = 30
MOST_SUBMITS = 300
_FIRST_SERVER_ERROR = 500


class Missed(Exception):
    """The attack did not take place."""


FAILURES = (OSError, http.client.HTTPException, subprocess.SubprocessError, ValueError, Missed)


OUTSIDE = ("poison", "odd-body", "odd-address", "odd-reason", "invalid-keys")
FLOOD = ("submit-flood",)
"""Somebody else's attack: who has no submits left cannot reserve the dev servers that the others need."""
REFUSALS = ("409 quota_exceeded", "429 too_many_requests")


@dataclass(frozen=True)
class Attack:
    name: str
    begun: float
    ended: float


@dataclass
class Record:
    """What one attacker did."""

    attacks: list[Attack] = field(default_factory=list)
    effects: Counter[tuple[str, str]] = field(default_factory=Counter)
    """How often an attack had which effect."""
    missed: Counter[str] = field(default_factory=Counter)
    server_errors: Counter[str] = field(default_factory=Counter)
    submits: Counter[str] = field(default_factory=Counter)
    """The answers to a flood."""


@dataclass
class Attacker:
    person: Person
    dsn: str
    script: Path
    ssh_key: Path
    chance: random.Random
    stop: Stop
    kinds: Sequence[str] = (*INSIDE, *OUTSIDE)
    record: Record = field(default_factory=Record)
    reserved: float = 0.0
    """When the last dev server was asked for."""

    def report(self, results: Connection) -> None:
        """Attack in a process of one's own, and tell the test at the end."""
        self.run()
        results.send(self.record)
        results.close()

    def run(self) -> None:
        server = self._reserve()
        while not self.stop.is_set():
            name = self.chance.choice(self.kinds)
            begun = time.monotonic()
            try:
                self.record.effects[name, self._attack(server, name)] += 1
            except FAILURES as error:
                self.record.missed[f"{name}: {type(error).__name__}: {error}"[:200]] += 1
            self.record.attacks.append(Attack(name, begun, time.monotonic()))
            if self._needs_another(server):
                # Its trees, links and pipes have to be removed now.
                self._release(server)
                server = self._reserve()
        self._release(server)

    def _needs_another(self, server: str) -> bool:
        """Now and then, as often as anybody may submit for long; or because this one has ended."""
        if not self._uses_servers():
            return False
        may_submit = time.monotonic() - self.reserved >= PAUSE_SECONDS
        return (may_submit and self.chance.random() < 0.2) or not self._is_active(server)

    def _uses_servers(self) -> bool:
        return not set(self.kinds).isdisjoint(INSIDE)

    def _attack(self, server: str, name: str) -> str:
        """What it achieved."""
        outside: dict[str, Callable[[], str]] = {
            "poison": self._poison,
            "odd-body": self._send_odd_body,
            "odd-address": self._choose_odd_address,
            "odd-reason": lambda: self._keep_for_an_odd_reason(server),
            "submit-flood": self._flood,
            "invalid-keys": self._try_invalid_keys,
        }
        return outside[name]() if name in outside else self._attack_inside(server, name)

    def _reserve(self) -> str:
        """Empty where none is used, or none could be had in time."""
        if not self._uses_servers():
            return ""
        self.reserved = time.monotonic()
        with suppress(OSError, http.client.HTTPException, ValueError):
            job = self.person.submit(GPU_TYPE)
            if self.person.wait_until_active(job, self.stop):
                return job
            self.person.cancel(job)
        return ""

    def _release(self, server: str) -> None:
        with suppress(OSError, http.client.HTTPException, ValueError):
            self.person.cancel(server)

    def _is_active(self, server: str) -> bool:
        with suppress(OSError, http.client.HTTPException, ValueError):
            return bool(server) and self.person.call("GET", f"/v1/jobs/{server}").get("status") == "active"
        return False

    def _ask(self, method: str, path: str, content: bytes) -> str:
        """The status and the code of the answer."""
        answer = self.person.send(method, path, content)
        if answer.status >= _FIRST_SERVER_ERROR:
            self.record.server_errors[f"{method} {path}: {answer.status}"] += 1
        text = answer.text  # type: ignore[attr-defined]  # see `Person.send`
        code = json.loads(text).get("code", "") if text else ""
        return f"{answer.status} {code}".rstrip()

    def _attack_inside(self, server: str, name: str) -> str:
        job = self.person.call("GET", f"/v1/jobs/{server}") if server else {}
        if not job.get("node_port"):
            raise Missed("no dev server")
        address = ["-p", str(job["node_port"]), f"dev@{job['node_ip']}"]
        known = [f"-o{option}" for option in SSH_OPTIONS]
        command = ["ssh", "-F", "none", "-i", str(self.ssh_key), *known, *address, "sh", "-s", "--", name]
        with self.script.open("rb") as script:
            ran = subprocess.run(
                [*command, str(self.person.port)],
                stdin=script,
                capture_output=True,
                timeout=_SSH_SECONDS,
                check=False,
            )
        said = ran.stdout.decode(errors="replace").strip()
        if ran.returncode or not said:
            raise Missed(f"status {ran.returncode}: {said} {ran.stderr.decode(errors='replace')[-80:]!r}")
        return said.splitlines()[-1]

    def _poison(self) -> str:
        queue, content = self.chance.choice(QUEUES), self.chance.choice(POISON)
        asyncio.run(_send_message(self.dsn, queue, content))
        return f"a message in {queue}"

    def _send_odd_body(self) -> str:
        method, path = self.chance.choice(BODY_ROUTES)
        return self._ask(method, path, self.chance.choice(ODD_BODIES))

    def _choose_odd_address(self) -> str:
        url = json.dumps({"url": self.chance.choice(ODD_ADDRESSES)}).encode()
        told = self._ask("PUT", "/v1/me/notifications", url)
        self.person.call("POST", "/v1/me/notifications/test")
        return told

    def _keep_for_an_odd_reason(self, server: str) -> str:
        reason = self.chance.choice(("\x1b[2J", "\x00", "x" * 2_000_000, "\ud800"))
        body = json.dumps({"hours": 1, "reason": reason}).encode()
        return self._ask("POST", f"/v1/jobs/{server or 'none'}/keep", body)

    def _flood(self) -> str:
        """Until the quota says no. Then everything is cancelled, so that the next flood has room."""
        asked = json.dumps(self.person.request(GPU_TYPE, hours=24)).encode()
        answers = Counter[str]()
        while "409 quota_exceeded" not in answers and answers.total() < MOST_SUBMITS:
            answers[self._ask("POST", "/v1/jobs/submit", asked)] += 1
        for job in self.person.list_jobs():
            self.person.cancel(job)
        if answers.keys().isdisjoint(REFUSALS):
            raise Missed(f"no limit was reached: {dict(answers)}")
        self.record.submits += answers
        return ", ".join(sorted(answers))

    def _try_invalid_keys(self) -> str:
        strangers = [Person(self.person.port, f"invalid-{number}") for number in range(20)]
        codes = {one.call("GET", "/v1/jobs").get("code", "") for one in strangers}
        return ", ".join(sorted(codes))


async def _send_message(dsn: str, queue: str, content: str) -> None:
    connection = await asyncpg.connect(dsn)
    try:
        await connection.execute("SELECT pgmq.send($1, $2::jsonb)", queue, content)
    finally:
        await connection.close()


def describe(attackers: Sequence[Record]) -> str:
    effects = sum((one.effects for one in attackers), Counter[tuple[str, str]]())
    missed = sum((one.missed for one in attackers), Counter[str]())
    told = {f"{name}: {effect}": count for (name, effect), count in sorted(effects.items())}
    return json.dumps({"attacks": told, "missed": dict(missed)}, indent=2)


def count_beside(attackers: Sequence[Record], begun: float, ended: float) -> Counter[str]:
    """The attacks that were going on in this stretch of time."""
    attacks = (attack for one in attackers for attack in one.attacks)
    return Counter(attack.name for attack in attacks if attack.begun < ended and attack.ended > begun)
