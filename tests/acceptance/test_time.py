"""The end of a reservation as a person meets it: on an open terminal, in the home, and with more time."""

from __future__ import annotations

import os
import pty
import select
import time
from collections.abc import Iterator

import pytest

from tests.support.machine import Machine, on_database, running_machine, wait_for

SHORTEST_WITH_A_WARNING = "0.0845"
"""Hours: a little more than five minutes, so that the last warning comes seconds after the start."""
LITTLE_MORE = "0.003"
"""Hours: about eleven seconds."""


@pytest.fixture(scope="module")
def started(module_database: str) -> Iterator[Machine]:
    with running_machine("--fleet", "test", **on_database(module_database)) as running:
        yield running


@pytest.fixture
def machine(started: Machine) -> Iterator[Machine]:
    """One for all tests; what each has reserved is ended after it."""
    yield started
    started.end_reservations()


class OpenTerminal:
    """`gpu-dev connect` on a real terminal, kept open."""

    def __init__(self, machine: Machine, reservation: str) -> None:
        self.pid, self.descriptor = pty.fork()
        if self.pid == 0:
            config = machine.home / ".gpu-dev" / f"{reservation[:8]}-sshconfig"
            command = ["ssh", "-F", str(config), f"gpu-dev-{reservation[:8]}"]
            os.execvpe(command[0], command, machine.environment)  # noqa: S606 - no shell is wanted
        self.text = ""

    def wait_for(self, words: str, count: int = 1) -> None:
        deadline = time.monotonic() + 60
        while self.text.count(words) < count:
            ready, _, _ = select.select([self.descriptor], [], [], max(0.0, deadline - time.monotonic()))
            assert ready, f"Not seen {count} times: {words!r} in {self.text!r}"
            self.text += os.read(self.descriptor, 65536).decode(errors="replace")

    def close(self) -> None:
        os.close(self.descriptor)
        os.waitpid(self.pid, 0)


def list_warnings(machine: Machine, reservation: str) -> list[str]:
    return machine.ssh(reservation, "ls | grep ^WARN").stdout.split()


def test_a_warning_is_seen_extended_away_and_seen_again(machine: Machine) -> None:
    reservation = machine.reserve("--hours", SHORTEST_WITH_A_WARNING)
    terminal = OpenTerminal(machine, reservation)
    try:
        terminal.wait_for("ends in 5 minutes, at ")
        assert wait_for(lambda: list_warnings(machine, reservation), "the file") == [
            "WARN_EXPIRES_IN_5MIN.txt"
        ]
        assert "ends in 5 minutes" in machine.show(reservation)["warning"]
        before = machine.show(reservation)["expires_at"]

        assert "ends" in machine.run("extend", LITTLE_MORE).stdout
        after = machine.show(reservation)
        assert after["expires_at"] > before
        assert "warning" not in after
        wait_for(lambda: not list_warnings(machine, reservation), "the file is gone")

        terminal.wait_for("ends in 5 minutes, at ", count=2)
        wait_for(lambda: list_warnings(machine, reservation), "the file is there again")
    finally:
        terminal.close()


def test_more_than_is_left_is_refused_with_what_is_left(machine: Machine) -> None:
    reservation = machine.reserve("--hours", "1")
    refused = machine.run("extend", reservation, "48", check=False)
    assert refused.returncode == 2
    assert "by 47 hours at most" in refused.stderr
    assert machine.run("extend", reservation, "47h").returncode == 0
