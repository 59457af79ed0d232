"""Hostile dev servers beside ten honest users: they are served as before, and no process is replaced.

`GPU_DEV_SOAK_SECONDS` is the length of each of the two runs: first without anybody hostile, then with them.
`GPU_DEV_SOAK_QUIET_SECONDS` is that of the first one, should it be another.
`GPU_DEV_SOAK_ROUNDS` divides both into so many turns, one after the other: a machine with other work to do is
then about as busy in the one as in the other.
`GPU_DEV_SOAK_SEED` chooses the order of the attacks.
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import os
import random
import secrets
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from gpudev.app.identity.authentication import hash_key
from gpudev.domain.queue import find_quantile
from gpudev.ports.users import NewKey
from tests.soak.hostile import FLOOD, INSIDE, OUTSIDE, REFUSALS, Attacker, Record, count_beside, describe
from tests.soak.memory import read_memory_mb
from tests.soak.people import PAUSE_SECONDS, Honest, Person, Stop
from tests.support.machine import Machine, running_machine
from tests.support.reservations import open_test_stores

pytestmark = pytest.mark.soak

SECONDS = float(os.environ.get("GPU_DEV_SOAK_SECONDS", "600"))
QUIET_SECONDS = float(os.environ.get("GPU_DEV_SOAK_QUIET_SECONDS", SECONDS))
ROUNDS = int(os.environ.get("GPU_DEV_SOAK_ROUNDS", "1"))
SEED = int(os.environ.get("GPU_DEV_SOAK_SEED", "14"))
HONEST = 10
HOSTILE = 3
FLOODING = 1
"""Besides, and with a key of their own."""
MOST_TIMES_SLOWER = 2.0
LEAST_SUCCESS = 0.9
"""The rest may hit a dev server that is just ending."""
ENOUGH_ATTACKS = 200
FLEET = """
[[nodes]]
type = "t4"
count = 4

[[nodes]]
type = "a10g"
count = 2
"""
PROCESSES = multiprocessing.get_context("spawn")
ATTACKS = Path(__file__).with_name("attacks.sh")


@dataclass(frozen=True)
class Crowd:
    """The machine, and everybody who has a key for it."""

    machine: Machine
    dsn: str
    port: int
    ssh_key: Path
    public_key: str
    keys: tuple[str, ...]

    def leave_nothing(self) -> None:
        """Python cannot remove the trees that attackers make."""
        self.end_attacks()
        folders = [str(self.machine.state_dir / name) for name in ("homes", "servers")]
        subprocess.run(["find", *folders, "-mindepth", "1", "-delete"], check=False, capture_output=True)

    def end_attacks(self) -> None:
        """Their dev servers must not run on beside a turn without attacks."""
        for number in range(HONEST, HONEST + HOSTILE + FLOODING):
            person = self.person(number)
            for job in person.list_jobs():
                person.cancel(job)
                person.wait_until_over(job)

    def person(self, number: int) -> Person:
        return Person(self.port, self.keys[number], self.public_key)


@pytest.fixture
def crowd(database: str, tmp_path: Path) -> Iterator[Crowd]:
    fleet = tmp_path / "fleet.toml"
    fleet.write_text(FLEET)
    ssh_key = tmp_path / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", ssh_key], check=True)
    settings = {
        "GPU_DEV_DATABASE_URL": database,
        "GPU_DEV_NOTIFY_HOSTS": "hooks.example.org",
        # More than one user can log in, so that quotas are on.
        "ALLOWED_AWS_ACCOUNTS": "123456789012",
        "GPU_DEV_USAGE_SECONDS": "2",
    }
    with running_machine("--fleet", str(fleet), **settings) as machine:
        port = int(str(json.loads(machine.run("whoami", "--json").stdout)["api_url"]).rpartition(":")[2])
        keys = asyncio.run(add_keys(database, HONEST + HOSTILE + FLOODING))
        public_key = ssh_key.with_suffix(".pub").read_text().strip()
        there = Crowd(machine, database, port, ssh_key, public_key, keys)
        try:
            yield there
        finally:
            there.leave_nothing()


async def add_keys(dsn: str, count: int) -> tuple[str, ...]:
    keys = []
    async with open_test_stores(dsn) as stores:
        for number in range(count):
            user = await stores.users.upsert(f"user-{number}")
            key = secrets.token_urlsafe(32)
            stored = NewKey(hash_key(key), key[:8], datetime.now(UTC) + timedelta(hours=24))
            await stores.users.add_key(user.user_id, stored)
            keys.append(key)
    return tuple(keys)


@contextmanager
def acting(people: list[Honest], stop: threading.Event) -> Iterator[None]:
    threads = [threading.Thread(target=one.run) for one in people]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join()


@contextmanager
def attacking(attackers: list[Attacker]) -> Iterator[list[Connection]]:
    """Each in a process of its own: whose wait is measured shares no interpreter with them."""
    with ExitStack() as ends:
        results = []
        for one in attackers:
            result, sender = PROCESSES.Pipe(duplex=False)
            process = PROCESSES.Process(target=one.report, args=(sender,))
            process.start()
            sender.close()  # So that the end of a process without a result is noticed.
            ends.callback(process.join)
            results.append(ends.enter_context(result))
        yield results


@dataclass(frozen=True)
class Run:
    starts: list[tuple[float, float]]
    errors: list[str]
    attackers: list[Record]

    @property
    def seconds(self) -> list[float]:
        return sorted(active - submitted for submitted, active in self.starts)

    def find(self, quantile: float) -> float:
        return find_quantile(self.seconds, quantile)

    def describe(self) -> str:
        slow = [start for start in self.starts if start[1] - start[0] >= self.find(0.99)]
        beside = sum((count_beside(self.attackers, *start) for start in slow), Counter[str]())
        quantiles = ", ".join(f"p{q * 100:g} {self.find(q):.2f} s" for q in (0.5, 0.9, 0.99, 1.0))
        lines = [
            f"{len(self.starts)} honest starts, {quantiles}; {len(self.errors)} errors {self.errors[:3]}",
            f"beside the slowest hundredth: {dict(beside.most_common(8))}",
        ]
        return "\n".join(["", *lines, describe(self.attackers), ""])


def make_honest(person: Person, number: int, stop: threading.Event) -> Honest:
    return Honest(person, "t4", stop, delay=PAUSE_SECONDS * number / HONEST)


def join_runs(runs: list[Run]) -> Run:
    return Run(
        [start for run in runs for start in run.starts],
        [error for run in runs for error in run.errors],
        [record for run in runs for record in run.attackers],
    )


def gather_attackers(crowd: Crowd, stop: Stop, turn: int) -> list[Attacker]:
    kinds = [(*INSIDE, *OUTSIDE)] * HOSTILE + [FLOOD] * FLOODING
    return [
        Attacker(
            crowd.person(HONEST + number),
            crowd.dsn,
            ATTACKS,
            crowd.ssh_key,
            random.Random(SEED + number + turn * len(kinds)),
            stop,
            kinds=own,
        )
        for number, own in enumerate(kinds)
    ]


def describe_memory(machine: Machine) -> str:
    memory = {name: f"{read_memory_mb(pid):.0f} MB" for name, pid in machine.control_plane().items()}
    return f"memory {memory}, pids {machine.control_plane()}"


def serve_honest(crowd: Crowd, turn: int, *, hostile: bool) -> Run:
    stop, stop_attacks = threading.Event(), PROCESSES.Event()
    honest = [make_honest(crowd.person(number), number, stop) for number in range(HONEST)]
    attackers = gather_attackers(crowd, stop_attacks, turn) if hostile else []
    before = describe_memory(crowd.machine)
    with attacking(attackers) as results:
        try:
            with acting(honest, stop):
                stop.wait((SECONDS if hostile else QUIET_SECONDS) / ROUNDS)
        finally:
            stop_attacks.set()
        records = [result.recv() for result in results]
    run = Run(
        [start for person in honest for start in person.starts],
        [error for person in honest for error in person.errors],
        records,
    )
    sys.stdout.write(f"\nbefore: {before}\nafter: {describe_memory(crowd.machine)}{run.describe()}")
    sys.stdout.flush()
    return run


def test_every_attack_of_the_script_is_tried() -> None:
    known = [line.removesuffix(")") for line in ATTACKS.read_text().splitlines() if line.endswith(")")]
    assert set(INSIDE) <= set(known)


@pytest.mark.threat("everything at once")
def test_hostile_servers_do_not_slow_down_honest_users(crowd: Crowd) -> None:
    before = crowd.machine.control_plane()
    turns = []
    for turn in range(ROUNDS):
        turns.append((serve_honest(crowd, turn, hostile=False), serve_honest(crowd, turn, hostile=True)))
        crowd.end_attacks()
        assert crowd.machine.control_plane() == before, "a process of the control plane was replaced"
    quiet, loud = (join_runs(list(runs)) for runs in zip(*turns, strict=True))
    sys.stdout.write(f"\nAll without attacks:{quiet.describe()}\nAll with attacks:{loud.describe()}")
    assert (quiet.errors, loud.errors) == ([], [])
    assert [one.server_errors for one in loud.attackers] == [Counter()] * (HOSTILE + FLOODING) * ROUNDS
    check_attacks(loud.attackers)
    assert loud.find(0.99) <= MOST_TIMES_SLOWER * quiet.find(0.99)


def check_attacks(attackers: list[Record]) -> None:
    """Nearly all took place, and each kind did where there was time for all."""
    happened = sum((Counter(name for name, _ in one.effects.elements()) for one in attackers), Counter[str]())
    tried = Counter(attack.name for one in attackers for attack in one.attacks)
    assert happened.total() >= LEAST_SUCCESS * tried.total()
    if tried.total() >= ENOUGH_ATTACKS:
        assert set(happened) == {*INSIDE, *OUTSIDE, *FLOOD}
        check_flood(sum((one.submits for one in attackers), Counter[str]()))


def check_flood(answers: Counter[str]) -> None:
    """Reservations were made until the quota was used up, and submits until there were too many."""
    assert set(REFUSALS) <= set(answers)
    assert any(answer.startswith("2") for answer in answers)
