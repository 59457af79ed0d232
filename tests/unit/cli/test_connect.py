"""`connect`, with the real OpenSSH client and a real SSH server."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from gpudev.cli.commands.connect import ssh_arguments
from gpudev.client import codec
from gpudev.client.config import read_surroundings
from gpudev.client.ssh_keys import collect_public_keys
from gpudev.wire.jobs import JobDetail, JobNode
from tests.support.fake_api import FakeApi, Reply
from tests.support.wire_values import A_JOB, ACTIVE, FAILED, GANG
from tests.unit.cli.conftest import GpuDev


def answer_list(api: FakeApi, jobs: Sequence[JobDetail]) -> None:
    page = {"jobs": codec.encode(jobs), "total": len(jobs), "limit": 50, "offset": 0}
    api.on("GET", "/v1/jobs", Reply(body=page))


@pytest.fixture
def dev_server(api: FakeApi, home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FakeApi]:
    """The only active reservation, `train`, is a real SSH server that lets our own key in."""
    folder = tmp_path_factory.mktemp("server")
    (folder / "authorized_keys").write_text("\n".join(collect_public_keys(read_surroundings())) + "\n")
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / "host_key"], check=True)
    files = (str(folder / "host_key"), str(folder / "authorized_keys"))
    command = [sys.executable, "-m", "tests.support.ssh_server", *files]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        port = int(server.stdout.readline())
        host_keys = [f"[127.0.0.1]:{port} {(folder / 'host_key.pub').read_text().strip()}"]
        job = replace(ACTIVE, node_port=port, ssh_host_keys=host_keys)
        answer_list(api, [job])
        api.on("GET", "/v1/jobs/train", Reply(body=codec.encode(job)))
        yield api
        server.terminate()


def connect(*arguments: str) -> subprocess.CompletedProcess[str]:
    """In a process of its own, since it becomes `ssh`."""
    command = [sys.executable, "-m", "gpudev.cli.main", "ssh", *arguments]
    return subprocess.run(command, check=False, capture_output=True, text=True, stdin=subprocess.DEVNULL)


@pytest.mark.usefixtures("dev_server")
def test_a_command_runs_there_and_its_exit_code_comes_back() -> None:
    answer = connect("train", "--", "echo hello; exit 42")
    assert (answer.returncode, answer.stdout) == (42, "hello\n")


def test_node_of_a_gang_is_chosen_by_its_rank(dev_server: FakeApi) -> None:
    """Only the node of rank 1 is a real server; nobody answers for rank 0."""
    job = codec.loads(JobDetail, codec.dumps(dev_server.replies["GET", "/v1/jobs/train"][0].body))
    nodes = [
        JobNode(rank=0, node="a", pod_name="x", node_ip="127.0.0.1", node_port=1, ssh_host_keys=[]),
        JobNode(
            rank=1,
            node="b",
            pod_name="x-1",
            node_ip=job.node_ip,
            node_port=job.node_port,
            ssh_host_keys=job.ssh_host_keys,
        ),
    ]
    dev_server.on("GET", "/v1/jobs/train", Reply(body=codec.encode(replace(job, nodes=nodes))))
    assert connect("train", "--node", "1", "--", "echo hello").stdout == "hello\n"
    assert connect("train", "--", "echo hello").returncode == 255


@pytest.mark.parametrize(
    "job, rank, hint",
    [(ACTIVE, 1, "it has one"), (GANG, 2, "Its nodes are 0 to 1."), (GANG, -1, "Its nodes are 0 to 1.")],
    ids=["one node", "too high", "below 0"],
)
def test_node_that_is_not_there_is_refused(
    gpu_dev: GpuDev, api: FakeApi, job: JobDetail, rank: int, hint: str
) -> None:
    api.on("GET", "/v1/jobs/train", Reply(body=codec.encode(job)))
    result = gpu_dev("connect", "train", "--node", str(rank))
    assert result.code == 2
    assert f"Reservation 7f3a91c2 has no node {rank}." in result.err
    assert hint in result.err


@pytest.mark.usefixtures("dev_server")
def test_without_an_id_the_only_active_one_is_meant() -> None:
    assert connect("--", "echo", "a  b", "$HOME").stdout == "a  b $HOME\n"


def test_a_server_with_another_host_key_is_not_trusted(dev_server: FakeApi, tmp_path: Path) -> None:
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", tmp_path / "other"], check=True)
    job = codec.loads(JobDetail, codec.dumps(dev_server.replies["GET", "/v1/jobs/train"][0].body))
    impostor = replace(job, ssh_host_keys=[(tmp_path / "other.pub").read_text()])
    dev_server.on("GET", "/v1/jobs/train", Reply(body=codec.encode(impostor)))
    answer = connect("train", "--", "echo hello")
    assert (answer.returncode, answer.stdout) == (255, "")
    assert "Host key verification failed" in answer.stderr


@pytest.mark.parametrize(
    "jobs, code, words",
    [
        ([], 3, "You have no active reservation."),
        ([ACTIVE, replace(ACTIVE, name="b")], 2, "You have 2 active reservations."),
        ([A_JOB], 1, "Reservation 7f3a91c2 is not active yet: it is pending."),
    ],
    ids=["none", "two", "not yet"],
)
def test_without_an_id_it_must_be_clear_which(
    gpu_dev: GpuDev, api: FakeApi, jobs: list[JobDetail], code: int, words: str
) -> None:
    answer_list(api, jobs)
    result = gpu_dev("connect")
    assert result.code == code
    assert words in result.err


def test_what_is_over_cannot_be_reached(gpu_dev: GpuDev, api: FakeApi) -> None:
    api.on("GET", "/v1/jobs/train", Reply(body=codec.encode(FAILED)))
    result = gpu_dev("connect", "train")
    assert result.code == 1
    assert "Reservation 7f3a91c2 is over (failed)." in result.err


def test_a_separator_without_a_command(gpu_dev: GpuDev, home: Path) -> None:
    result = gpu_dev("connect", "train", "--")
    assert result.code == 2
    assert 'There is no command after "--".' in result.err


@pytest.mark.parametrize(
    "remote, on_terminal, expected",
    [
        ([], True, ["alias"]),
        (["htop"], True, ["-t", "alias", "--", "htop"]),
        (["htop"], False, ["alias", "--", "htop"]),
        (["cd x && make"], False, ["alias", "--", "cd x && make"]),
        (["python", "-c", "print(1)"], False, ["alias", "--", "python -c 'print(1)'"]),
    ],
)
def test_the_words_for_ssh(remote: list[str], expected: list[str], *, on_terminal: bool) -> None:
    arguments = ssh_arguments(Path("/c"), "alias", remote, on_terminal=on_terminal)
    assert arguments == ["ssh", "-F", "/c", *expected]
