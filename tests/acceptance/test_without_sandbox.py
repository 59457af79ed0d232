"""The whole product where dev servers have no sandbox: it works, and says so everywhere."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.machine import Machine, on_database, running_machine

FLEET = '[[nodes]]\ntype = "a100"\ncount = 2\ngpus = 2\n'
EVERY_HOST = (
    "for host in $(echo $MULTINODE_HOSTS | tr , ' '); do "
    "ssh $host 'echo $NODE_RANK'; scp -q $host:rank copy; cat copy; done"
)


@pytest.fixture(scope="module")
def machine(module_database: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    fleet = tmp_path_factory.mktemp("fleet") / "fleet.toml"
    fleet.write_text(FLEET)
    # No bubblewrap works here, as on a machine that forbids user namespaces.
    settings = {"GPU_DEV_BUBBLEWRAP": "/bin/false", **on_database(module_database)}
    with running_machine("--fleet", str(fleet), **settings) as running:
        yield running


@pytest.fixture(autouse=True)
def _leave_nothing(machine: Machine) -> Iterator[None]:
    yield
    machine.run("cancel", "--all", "--yes", check=False)


def test_status_and_the_greeting_say_that_nothing_is_isolated(machine: Machine) -> None:
    notices = " ".join(machine.ask("status")["notices"])
    assert "NOT isolated" in notices
    assert "/bin/false" in notices
    reservation = machine.reserve("-t", "a100")
    log_in = f"ssh -tt -F {machine.home}/.gpu-dev/{reservation[:8]}-sshconfig gpu-dev-{reservation[:8]}"
    greeting = machine.ssh(reservation, "true").stdout + _log_in(machine, log_in)
    assert "NOT isolated" in " ".join(greeting.split())
    assert "NOT limited: memory, CPU, processes" in " ".join(greeting.split())
    assert "/home/dev" not in greeting
    assert str(machine.state_dir) in greeting


def _log_in(machine: Machine, command: str) -> str:
    done = subprocess.run(
        command.split(),
        env=machine.environment,
        input="exit\n",
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return done.stdout


def test_an_editor_opens_the_real_home(machine: Machine) -> None:
    reservation = machine.reserve("-t", "a100")
    home = machine.ssh(reservation, "echo $HOME").stdout.strip()
    assert Path(home).is_relative_to(machine.state_dir)
    machine.run("config", "ssh-include")
    done = machine.run("open", "vscode", reservation, check=False)
    assert home in done.stderr + done.stdout
    assert "/home/dev" not in done.stderr + done.stdout


def test_the_nodes_of_a_gang_know_each_other_in_every_shell(machine: Machine) -> None:
    reservation = machine.reserve("-t", "a100", "-g", "4", "--distributed", "--disk", "none")
    for rank in ("0", "1"):
        machine.run("connect", reservation, "--node", rank, "--", "echo $RANK > rank")
    for shell in ("bash -lc", "sh -lc", "bash -c"):
        done = machine.run("connect", reservation, "--node", "1", "--", f'{shell} "{_escape(EVERY_HOST)}"')
        assert done.stdout.split() == ["0", "0", "1", "1"], (shell, done.stderr)


def _escape(command: str) -> str:
    return command.replace("$", "\\$")
