"""A client of version 0.3 against the whole product on one machine."""

from __future__ import annotations

import subprocess
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from gpudev.adapters.local.state import StateFolder
from gpudev.client.files import Credentials
from tests.support.api_server import Answer, ApiServer
from tests.support.client_0_3 import Client03, Wish
from tests.support.github import FakeGitHub, running_github
from tests.support.machine import Machine, on_database, running_machine, wait_for


@pytest.fixture(scope="module")
def github() -> Iterator[FakeGitHub]:
    with running_github() as running:
        yield running


@pytest.fixture(scope="module")
def machine(module_database: str, github: FakeGitHub) -> Iterator[Machine]:
    settings = {"GPU_DEV_GITHUB_URL": github.url, **on_database(module_database)}
    with running_machine("--fleet", "test", **settings) as running:
        yield running


@pytest.fixture
def old(machine: Machine) -> Client03:
    """With the key of our own client: how 0.3 logs in is another matter."""
    with machine.client() as client:
        client.whoami()
        url = client.target.api_url
    key = Credentials(machine.home / ".gpu-dev" / "credentials").find_key(url, datetime.now(UTC))
    parts = urlsplit(url)
    server = ApiServer(str(parts.hostname), int(parts.port or 0), StateFolder(machine.state_dir), _no_process)

    def call(method: str, path: str, body: object = None) -> Answer:
        return server.call(method, path, body, key)

    return Client03(call)


def _no_process() -> subprocess.Popen[bytes]:
    raise AssertionError("The machine runs its own.")


@pytest.fixture
def private_key(tmp_path: Path, github: FakeGitHub) -> Path:
    """A key pair whose public half is at GitHub and nowhere else."""
    file = tmp_path / "id_ed25519"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", file], check=True)
    github.keys["octo-ada"] = [file.with_suffix(".pub").read_text().strip()]
    return file


def test_submit_poll_list_log_in_and_cancel(old: Client03, private_key: Path, tmp_path: Path) -> None:
    reservation_id = str(uuid.uuid4())
    wish = Wish(gpu_count=2, name="Old Friend", github_user="octo-ada", env={"RECREATE_ENV": "true"})
    answer = old.submit(wish, reservation_id)
    assert (answer.status, answer.json["job_id"]) == (200, reservation_id)

    def find_active() -> object:
        job = old.poll(reservation_id)
        return job if job and job["status"] == "active" else None

    job = wait_for(find_active, "it is active")
    assert (job["name"], job["gpu_count"], job["github_user"]) == ("old-friend", 2, "octo-ada")
    assert [listed["job_id"] for listed in old.list()] == [reservation_id]

    known_hosts = tmp_path / "known_hosts"
    known_hosts.write_text("".join(f"{line}\n" for line in job["ssh_host_keys"]))
    options = ["-i", str(private_key), "-o", f"UserKnownHostsFile={known_hosts}", "-o", "IdentitiesOnly=yes"]
    command = [*job["ssh_command"].split(), *options, "-F", "none", "-o", "BatchMode=yes"]
    shown = subprocess.run(
        [*command, "echo $CUDA_VISIBLE_DEVICES; echo [$GPU_TYPE$RESERVATION_ID]"],
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    ).stdout.split()
    assert len(shown[0].split(",")) == 2
    assert shown[1] == "[]", "what was meant for us is not in its environment"

    assert old.cancel(reservation_id[:8])["job_id"] == reservation_id
    wait_for(lambda: (old.poll(reservation_id) or {}).get("status") == "cancelled", "it is cancelled")
    assert old.list() == []
    assert old.submit(wish, reservation_id).json["status"] == "cancelled", "a late repeat starts nothing"


def test_a_stopped_reservation_waits_in_the_eyes_of_an_older_client(machine: Machine, old: Client03) -> None:
    reservation = machine.reserve("-t", "t4", "--disk", "none")
    machine.run("stop", reservation, "--yes")
    assert machine.show(reservation)["status"] == "stopped"
    assert (old.poll(reservation) or {})["status"] == "queued"
    everything = old.call("GET", "/v1/jobs").json["jobs"]
    assert {job["status"] for job in everything if job["job_id"] == reservation} == {"queued"}
    assert reservation in {job["job_id"] for job in old.list("queued")}
    machine.run("cancel", reservation, "--yes")
