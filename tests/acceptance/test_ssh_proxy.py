"""Dev servers through the SSH proxy, as a person uses it: `gpu-dev connect`, `ssh` and `scp`."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.machine import Machine, on_database, running_machine, wait_for

NOWHERE = "192.0.2.1"
"""Belongs to nobody: who gets to a server although its address is this one was led there."""


@pytest.fixture(scope="module")
def machine(module_database: str) -> Iterator[Machine]:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    settings = {"GPU_DEV_SSH_PROXY_PORT": str(port), **on_database(module_database)}
    with running_machine("--fleet", "test", **settings) as running:
        yield running


@pytest.fixture(scope="module")
def reservation(machine: Machine) -> str:
    return machine.reserve("-t", "t4")


def config_of(machine: Machine, reservation: str) -> Path:
    """The user's configuration of it, with an address that leads nowhere."""
    config = machine.home / ".gpu-dev" / f"{reservation[:8]}-sshconfig"
    config.write_text(re.sub(r"HostName .*", f"HostName {NOWHERE}", config.read_text()))
    return config


def ssh(
    machine: Machine, reservation: str, command: str, typed: str = ""
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["ssh", "-F", config_of(machine, reservation), f"gpu-dev-{reservation[:8]}", command],
        env=machine.environment,
        input=typed,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_a_shell_through_the_proxy_is_like_any_other(machine: Machine, reservation: str) -> None:
    done = ssh(machine, reservation, "cat; echo words >&2; exit 7", "typed\n")
    assert (done.stdout, done.returncode) == ("typed\n", 7), done.stderr
    assert "words" in done.stderr


def test_gpu_dev_connect_goes_through_the_proxy(machine: Machine, reservation: str) -> None:
    assert machine.ssh(reservation, "exit 5").returncode == 5
    written = (machine.home / ".gpu-dev" / f"{reservation[:8]}-sshconfig").read_text()
    assert f"--proxy-url http://127.0.0.1:{machine.settings['GPU_DEV_SSH_PROXY_PORT']}" in written


def test_files_are_copied_whole_both_ways(machine: Machine, reservation: str, tmp_path: Path) -> None:
    there = f"gpu-dev-{reservation[:8]}:data.bin"
    content = os.urandom(16 << 20)
    (tmp_path / "out.bin").write_bytes(content)
    for source, target in ((str(tmp_path / "out.bin"), there), (there, str(tmp_path / "back.bin"))):
        copy = ["scp", "-q", "-F", config_of(machine, reservation), source, target]
        subprocess.run(copy, env=machine.environment, check=True, timeout=60)
    assert (tmp_path / "back.bin").read_bytes() == content


def test_open_and_new_connections_do_not_need_the_api(machine: Machine, reservation: str) -> None:
    open_shell = subprocess.Popen(
        ["ssh", "-F", config_of(machine, reservation), f"gpu-dev-{reservation[:8]}", "cat"],
        env=machine.environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert open_shell.stdin is not None
    assert open_shell.stdout is not None
    open_shell.stdin.write(b"before\n")
    open_shell.stdin.flush()
    assert open_shell.stdout.readline() == b"before\n"
    api = machine.control_plane()["api"]
    os.kill(api, signal.SIGSTOP)
    try:
        assert ssh(machine, reservation, "echo new").stdout == "new\n"
    finally:
        os.kill(api, signal.SIGKILL)
    after, _ = open_shell.communicate(b"after\n", timeout=60)
    assert after == b"after\n"
    assert open_shell.returncode == 0


def test_a_proxy_that_was_killed_is_started_again(machine: Machine, reservation: str) -> None:
    machine.kill("ssh-proxy")
    wait_for(lambda: ssh(machine, reservation, "echo again").stdout == "again\n", "another proxy")


def test_the_end_of_the_input_is_passed_on(machine: Machine, reservation: str) -> None:
    done = machine.run("ssh-proxy", reservation)
    assert done.stdout.startswith("SSH-2.0-")


@pytest.mark.parametrize(
    "arguments, code, words",
    [
        pytest.param(["ssh-proxy", "nonsense"], 3, "not found", id="unknown"),
        pytest.param(["ssh-proxy", "{id}", "--node", "3"], 3, "no node 3", id="no-such-node"),
        pytest.param(["ssh-proxy", "{id}", "--proxy-url", "http://127.0.0.1:1"], 7, "refused", id="no-proxy"),
    ],
)
def test_a_mistake_gets_a_sentence(
    machine: Machine, reservation: str, arguments: list[str], code: int, words: str
) -> None:
    done = machine.run(*(word.format(id=reservation) for word in arguments), check=False)
    assert (done.returncode, done.stdout) == (code, "")
    assert words in done.stderr
