"""What one user does in a dev server, and whether anybody else notices."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from gpudev.adapters.local.trees.removal import remove_tree
from tests.support.machine import Machine, running_machine, wait_for

pytestmark = pytest.mark.long

# Two thousand names are too many for one path, but not for one after the other.
NEST = "cd {} && p=$(printf 'd/%.0s' $(seq 700)); for n in {}; do {} cd $p || exit 1; done 2>/dev/null; {}"


@pytest.fixture(scope="module")
def machine(module_database: str) -> Iterator[Machine]:
    settings = {
        "GPU_DEV_REQUESTS_PER_SECOND": "0",
        "GPU_DEV_USAGE_SECONDS": "0.2",
        "GPU_DEV_NOTIFY_HOSTS": "hooks.example.org,127.0.0.1:9",
        "GPU_DEV_DATABASE_URL": module_database,
    }
    with running_machine("--fleet", "test", **settings) as running:
        yield running
        # Few programs can remove what users have put there.
        remove_tree(running.state_dir / "disks")


@pytest.fixture(autouse=True)
def _leave_nothing(machine: Machine) -> Iterator[None]:
    yield
    machine.run("cancel", "--all", "--yes", check=False)


def query(machine: Machine, statement: str, *values: Any) -> Any:
    async def fetch() -> Any:
        connection = await asyncpg.connect(machine.settings["GPU_DEV_DATABASE_URL"])
        try:
            return await connection.fetchval(statement, *values)
        finally:
            await connection.close()

    return asyncio.run(fetch())


def wait_for_samples(machine: Machine, reservation: str) -> None:
    """Until it has been measured twice more."""
    statement = "SELECT count(*) FROM reservation_usage WHERE reservation_id = $1"
    before = query(machine, statement, reservation)
    wait_for(lambda: query(machine, statement, reservation) >= before + 2, "it is measured")


def list_leftovers(machine: Machine) -> list[Path]:
    folders = [machine.state_dir / "servers", *(machine.state_dir / "disks").iterdir()]
    return [entry for folder in folders for entry in folder.iterdir() if entry.name.startswith(".")]


def test_a_process_of_any_name_disturbs_nobody(machine: Machine) -> None:
    hostile, honest = machine.reserve("-t", "t4", "--no-persist"), machine.reserve("-t", "t4", "--no-persist")
    controller = machine.control_plane()["controller"]
    named = r"cp /bin/sleep $'/tmp/\xffx' && ($'/tmp/\xffx' 300 </dev/null >/dev/null 2>&1 &) && echo started"
    assert "started" in machine.ssh(hostile, f"bash -c {_quote(named)}").stdout
    for reservation in (hostile, honest):
        wait_for_samples(machine, reservation)
    assert machine.control_plane()["controller"] == controller
    machine.run("cancel", hostile, "--yes")


def test_folders_deeper_than_any_path_disturb_nobody(machine: Machine) -> None:
    hostile = machine.reserve("-t", "t4", "--disk", "deep")
    controller = machine.control_plane()["controller"]
    for place in ("~", "/workspace"):
        nest = NEST.format(place, "1 2 3", "mkdir -p $p &&", "touch bottom && echo made")
        assert machine.ssh(hostile, f"bash -c {_quote(nest)}").stdout.strip() == "made"
    machine.run("cancel", hostile, "--yes")
    disk = wait_for(lambda: _find_free_disk(machine, "deep"), "the disk has its snapshot")
    assert disk["snapshot_count"] == 1
    wait_for(lambda: not list_leftovers(machine), "nothing is left of it")
    assert machine.control_plane()["controller"] == controller
    machine.kill("controller")
    wait_for(lambda: machine.control_plane().get("controller", controller) != controller, "it is back")
    again = machine.reserve("-t", "t4", "--disk", "deep")
    look = NEST.format("~", "1 2 3", "", "test -e bottom && echo there")
    assert machine.ssh(again, f"bash -c {_quote(look)}").stdout.strip() == "there"


@pytest.mark.parametrize("address", ["https://hooks.example.org/é", "https://hooks.example.org/a b"])
def test_an_address_that_http_cannot_carry_is_refused(machine: Machine, address: str) -> None:
    refused = machine.run("notify", "set", address, check=False)
    assert refused.returncode == 2
    assert "not an address" in refused.stderr


def test_an_address_that_was_kept_by_an_earlier_version_disturbs_nobody(machine: Machine) -> None:
    machine.run("notify", "set", "https://hooks.example.org/x")
    query(machine, "UPDATE notification_targets SET url = 'https://hooks.example.org/é'")
    controller = machine.control_plane()["controller"]
    machine.run("notify", "test")
    wait_for(lambda: query(machine, "SELECT count(*) FROM pgmq.q_notifications") == 0, "it is given up")
    assert machine.control_plane()["controller"] == controller
    machine.run("notify", "unset")


NOBODY = "00000000-0000-4000-8000-000000000000"
STRANGE = [
    '{"foo": 1}',
    '"text"',
    "[1]",
    "null",
    '{"reservation_id": "x", "disk_id": [], "number": "y"}',
    json.dumps({"reservation_id": NOBODY, "disk_id": NOBODY}),
]
QUEUES = ["gpu_reservations", "disk_operations", "notifications"]
SEND = "SELECT count(*) FROM unnest($1::text[]) q, unnest($2::text[]) m, LATERAL pgmq.send(q, m::jsonb)"
COUNT = "SELECT sum(queue_length) FROM pgmq.metrics_all() WHERE queue_name = ANY ($1::text[])"


def test_messages_that_are_not_ours_become_dead_letters(machine: Machine) -> None:
    controller = machine.control_plane()["controller"]
    assert query(machine, SEND, QUEUES, STRANGE) == 18
    for queue in QUEUES:
        query(machine, "SELECT pg_notify('gpu_dev_messages', $1)", queue)
    wait_for(lambda: query(machine, COUNT, QUEUES) == 0, "no message is read for ever")
    honest = machine.reserve("-t", "t4", "--no-persist")
    assert machine.show(honest)["status"] == "active"
    assert machine.control_plane()["controller"] == controller
    letters = machine.ask("admin", "dead-letters")["dead_letters"]
    assert len(letters) == 18
    assert all(letter["error"] for letter in letters)
    first, *others = [letter["letter_id"] for letter in letters]
    assert machine.ask("admin", "dead-letters", "retry", first)["letter_id"] == first
    for letter in others:
        machine.run("admin", "dead-letters", "drop", letter)
    wait_for(lambda: len(machine.ask("admin", "dead-letters")["dead_letters"]) == 1, "it is dead again")
    assert machine.run("admin", "dead-letters", "drop", first, check=False).returncode == 3
    machine.run(
        "admin", "dead-letters", "drop", machine.run("admin", "dead-letters", "-o", "name").stdout.strip()
    )
    assert "no dead letters" in machine.run("admin", "dead-letters").stdout


def test_a_controller_that_stands_still_shows_in_ready(machine: Machine) -> None:
    controller = machine.control_plane()["controller"]
    wait_for(lambda: ask_ready(machine)["status"] == "healthy", "everything works")
    os.kill(controller, signal.SIGSTOP)
    try:
        query(machine, "UPDATE controllers SET beat_at = beat_at - interval '90 seconds'")
        stopped = ask_ready(machine)
        assert stopped["status"] == "degraded"
        assert stopped["controller"].startswith("not heard of for ")
    finally:
        os.kill(controller, signal.SIGCONT)
    wait_for(lambda: ask_ready(machine)["status"] == "healthy", "it works again")


def ask_ready(machine: Machine) -> dict[str, Any]:
    address = json.loads((machine.state_dir / "control-plane").read_text())["api_url"]
    with urllib.request.urlopen(f"{address}/ready", timeout=30) as answer:  # noqa: S310 - our own address
        body: dict[str, Any] = json.load(answer)
    return body


def _find_free_disk(machine: Machine, name: str) -> Any:
    disk = machine.ask("disk", "show", name)
    return disk if disk["state"] == "available" and disk["snapshot_count"] else None


def _quote(command: str) -> str:
    return "'" + command.replace("'", "'\\''") + "'"
