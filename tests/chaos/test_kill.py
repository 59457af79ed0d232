"""`kill -9` of any part of the control plane, in the middle of ten reservations.

Whatever is killed: no GPU is given twice, none leaks, no accepted reservation is lost or stuck, and the
servers that run stay reachable at the same address, with the same home and the same open shell.
"""

from __future__ import annotations

import subprocess
import threading
import uuid
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from gpudev.client.errors import ClientError
from gpudev.wire.cluster import TypeAvailability
from gpudev.wire.jobs import JobDetail, SubmitRequest
from tests.support.machine import Machine, running_machine, wait_for

SIZES = (1, 2, 1, 4, 1, 2, 1, 2, 1, 1)
GPUS = 8
FAULT_POINTS = [
    f"{when}_{what}"
    for what in ("create_server", "delete_server", "record", "look_again")
    for when in ("before", "after")
]


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    with running_machine("--fleet", "test", GPU_DEV_FAULT_FILE=str(tmp_path / "fault")) as running:
        yield running


class OpenShell:
    """A shell on a dev server that stays open, as a person's terminal does."""

    def __init__(self, machine: Machine, reservation: str) -> None:
        config = machine.home / ".gpu-dev" / f"{reservation[:8]}-sshconfig"
        self._ssh = subprocess.Popen(
            ["ssh", "-T", "-F", config, f"gpu-dev-{reservation[:8]}", "bash"],
            env=machine.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def ask(self, command: str) -> str:
        assert self._ssh.stdin is not None
        assert self._ssh.stdout is not None
        self._ssh.stdin.write(command + "\n")
        self._ssh.stdin.flush()
        return self._ssh.stdout.readline().strip()

    def close(self) -> None:
        self._ssh.communicate("exit\n", timeout=10)


def submit_all(machine: Machine, keys: list[str], kill: threading.Event) -> list[str | None]:
    """Ten submits at once; the ids of those that were accepted. The kill comes after the first few."""

    def submit(number: int) -> str | None:
        request = SubmitRequest(
            gpu_type="t4", gpu_count=SIZES[number], duration_hours=1, ssh_public_keys=[public_key(machine)]
        )
        try:
            with machine.client() as client:
                answer = client.reserve(request, idempotency_key=keys[number])
        except ClientError:
            return None
        if number >= 2:
            kill.set()
        return answer.job_id

    with ThreadPoolExecutor(4) as pool:
        return list(pool.map(submit, range(len(SIZES))))


def public_key(machine: Machine) -> str:
    return (machine.home / ".gpu-dev" / "id_ed25519.pub").read_text().strip()


def list_jobs(machine: Machine, *statuses: str) -> list[JobDetail]:
    with machine.client() as client:
        return client.list(statuses=statuses, limit=100).jobs


def measure_room(machine: Machine) -> TypeAvailability:
    with machine.client() as client:
        return client.availability().availability["t4"]


def count_statuses(machine: Machine) -> Counter[str]:
    return Counter(job.status for job in list_jobs(machine))


def is_settled(machine: Machine) -> bool:
    """Nothing is on its way any more: what fits runs, and the rest waits with its place."""
    jobs = list_jobs(machine)
    if any(job.status in {"pending", "preparing"} for job in jobs):
        return False
    waiting = [job for job in jobs if job.status == "queued"]
    first = min(waiting, key=lambda job: job.created_at, default=None)
    return first is None or measure_room(machine).max_reservable < first.gpu_count


def gpus_in_use(machine: Machine) -> list[str]:
    """What each active server says it has, asked over SSH."""
    found: list[str] = []
    for job in list_jobs(machine, "active"):
        answer = machine.ssh(job.job_id, "echo $CUDA_VISIBLE_DEVICES")
        assert answer.returncode == 0, answer.stderr
        names = answer.stdout.strip().split(",")
        assert len(names) == job.gpu_count
        found += names
    return found


@pytest.mark.parametrize(
    "killed",
    [
        pytest.param(("api",), id="api", marks=pytest.mark.long),
        pytest.param(("controller",), id="controller", marks=pytest.mark.long),
        pytest.param(("postgres",), id="postgres", marks=pytest.mark.long),
        pytest.param(("up", "api", "controller", "postgres"), id="everything"),
    ],
)
def test_ten_reservations_survive_a_kill(machine: Machine, killed: tuple[str, ...]) -> None:
    veteran = machine.reserve("-t", "t4", "-g", "1", "--name", "veteran")
    shell = OpenShell(machine, veteran)
    shell_pid = shell.ask("echo $$; echo kept > note")
    address = machine.show(veteran)["ssh_command"]
    keys = [str(uuid.uuid4()) for _ in SIZES]
    kill = threading.Event()
    killer = threading.Thread(target=lambda: kill.wait(30) and machine.kill(*killed))
    killer.start()
    accepted = submit_all(machine, keys, kill)
    killer.join()
    if "up" in killed:
        machine.up("--fleet", "test")

    wait_for(lambda: is_answering(machine), "the API")
    repeated = submit_all(machine, keys, kill)
    assert all(before in {None, after} for before, after in zip(accepted, repeated, strict=True))
    known = {job.job_id for job in list_jobs(machine)}
    assert known == {veteran, *repeated}, "nothing lost, nothing doubled"

    wait_for(lambda: is_settled(machine), f"everything to move on: {count_statuses(machine)}")
    in_use = gpus_in_use(machine)
    assert len(set(in_use)) == len(in_use) <= GPUS, "no GPU is given twice"

    assert machine.show(veteran)["ssh_command"] == address
    assert shell.ask("echo $$") == shell_pid, "the open shell has seen nothing of it"
    assert machine.ssh(veteran, "cat note").stdout == "kept\n"
    shell.close()

    drain(machine)


def drain(machine: Machine) -> None:
    """Cancel everything, in the order of the queue: all end, and every GPU is free again."""
    machine.run("cancel", "--all", "--yes")
    assert set(count_statuses(machine)) == {"cancelled"}
    wait_for(lambda: measure_room(machine).available == GPUS, "free GPUs")
    assert not list((machine.state_dir / "servers").iterdir()), "no server is left"


def is_answering(machine: Machine) -> bool:
    try:
        list_jobs(machine)
    except ClientError:
        return False
    return True


def is_disk_available(machine: Machine) -> bool:
    """Released, and with its snapshot."""
    return all(disk["state"] == "available" for disk in machine.ask("disk", "list")["disks"])


@pytest.mark.long
def test_the_controller_may_die_at_every_step(machine: Machine, tmp_path: Path) -> None:
    """A kill before and after each action by name; the next controller completes it, and doubles nothing."""
    fault = tmp_path / "fault"
    for point in FAULT_POINTS:
        fault.write_text(point)
        reservation = machine.reserve("-t", "t4", "-g", "2")
        in_use = gpus_in_use(machine)
        assert len(in_use) == 2, point
        machine.run("cancel", reservation, "--yes")
        assert not fault.exists(), f"{point} was never reached"
        with machine.client() as client:
            kinds = [event.kind for event in client.events(reservation) if event]
        assert kinds == ["submitted", "placed", "active", "cancelled", "cleaned"], point
        wait_for(lambda: measure_room(machine).available == GPUS, point)
        # The next point is for the next reservation, not for the disk of this one, which it would wait for.
        wait_for(lambda: is_disk_available(machine), point)
    assert not list((machine.state_dir / "servers").iterdir())
