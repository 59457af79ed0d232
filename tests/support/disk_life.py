"""What a person does with a disk, and how they see that nothing on it is lost: the same on every backend."""

from __future__ import annotations

from tests.support.machine import Machine, wait_for

WORDS = "every byte of it"


def write_and_cancel(machine: Machine, gpu_type: str, disk: str, file: str) -> None:
    reservation = machine.reserve("-t", gpu_type, "--disk", disk)
    done = machine.ssh(reservation, f"echo {WORDS} > ~/{file} && sync")
    assert done.returncode == 0, done.stderr
    machine.run("cancel", reservation, "--yes")


def read(machine: Machine, gpu_type: str, disk: str, file: str) -> str:
    reservation = machine.reserve("-t", gpu_type, "--disk", disk)
    content = machine.ssh(reservation, f"cat ~/{file}").stdout.strip()
    machine.run("cancel", reservation, "--yes")
    return content


def check_that_a_file_lives_through_everything(machine: Machine, gpu_type: str) -> None:
    write_and_cancel(machine, gpu_type, "first", "kept.txt")
    wait_for(lambda: machine.ask("disk", "show", "first")["snapshot_count"], "the snapshot")
    assert "kept.txt" in machine.run("disk", "list-content", "first").stdout

    machine.run("disk", "rename", "first", "second")
    machine.run("disk", "clone", "second", "third")
    machine.run("disk", "delete", "second", "--yes")
    assert [disk["disk_name"] for disk in machine.ask("disk", "list", "--deleted")["disks"]] == ["second"]
    assert machine.run("disk", "rename", "second", "other", check=False).returncode == 1
    machine.run("disk", "restore", "second", "--as", "fourth")

    assert read(machine, gpu_type, "third", "kept.txt") == WORDS
    assert read(machine, gpu_type, "fourth", "kept.txt") == WORDS
