"""Disks of dev servers that are pods, used as a person would: what was written is there the next time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.fault_stories import DISK_FAULT_POINTS, FaultPoint
from tests.support.disk_life import WORDS, check_that_a_file_lives_through_everything, read, write_and_cancel
from tests.support.kubernetes.access import Access
from tests.support.kubernetes.cluster import Cluster
from tests.support.kubernetes.provisioner import NODE_LABEL
from tests.support.kubernetes.storage import CLASS, SNAPSHOT_CLASS
from tests.support.kubernetes_machine import running_on_kubernetes
from tests.support.machine import Machine, wait_for
from tests.support.stop_life import check_that_a_stop_keeps_the_disk_and_the_time


@pytest.fixture(scope="module")
def own_namespace(access: Access) -> Iterator[str]:
    with access.namespace() as name:
        yield name


@pytest.fixture(scope="module")
def fault_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fault") / "point"


@pytest.fixture(scope="module")
def machine(
    cluster: Cluster,
    access: Access,
    own_namespace: str,
    fault_file: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Machine]:
    cluster.storage.start(access)
    settings = {
        "GPU_DEV_DISK_STORAGE": "kubernetes",
        "GPU_DEV_DISK_STORAGE_CLASS": CLASS,
        "GPU_DEV_DISK_SNAPSHOT_CLASS": SNAPSHOT_CLASS,
        "GPU_DEV_DISK_ZONE_LABEL": NODE_LABEL,
    }
    settings["GPU_DEV_FAULT_FILE"] = str(fault_file)
    folder = tmp_path_factory.mktemp("product")
    with running_on_kubernetes(access, own_namespace, folder, **settings) as running:
        yield running


@pytest.fixture(autouse=True)
def _leave_nothing(machine: Machine) -> Iterator[None]:
    yield
    machine.run("cancel", "--all", "--yes", check=False)


def test_a_file_lives_through_everything_that_can_be_done_to_its_disk(machine: Machine) -> None:
    check_that_a_file_lives_through_everything(machine, "h100")


def test_the_greeting_says_what_becomes_of_the_home(machine: Machine) -> None:
    first = machine.reserve("-t", "h100")
    assert 'is your disk "default"' in machine.ssh(first, "cat /etc/motd").stdout
    second = machine.reserve("-t", "h100")
    greeting = machine.ssh(second, "cat /etc/motd").stdout
    assert "goes when the reservation ends" in greeting
    assert 'Your disk "default" is in use by another reservation' in greeting


def test_a_disk_stays_where_it_is_and_its_reservations_go_there(
    machine: Machine, access: Access, own_namespace: str
) -> None:
    write_and_cancel(machine, "h100", "tied", "here.txt")
    wait_for(lambda: machine.ask("disk", "show", "tied")["state"] == "available", "a free disk")
    elsewhere = machine.submit("-t", "a100", "--disk", "tied")
    waiting = wait_for(lambda: (job := machine.show(elsewhere))["status"] == "queued" and job, "the queue")
    assert waiting["reason"] == "no_nodes"
    # Nobody behind it is held back.
    machine.reserve("-t", "a100", "--disk", "none")
    machine.run("cancel", elsewhere, "--yes")
    assert read(machine, "h100", "tied", "here.txt") == WORDS


def test_what_nobody_purged_outlives_the_namespace(
    machine: Machine, access: Access, own_namespace: str
) -> None:
    write_and_cancel(machine, "h100", "safe", "kept.txt")
    wait_for(lambda: machine.ask("disk", "show", "safe")["state"] == "available", "a free disk")
    volumes = access.get("pv")["items"]
    own = [one for one in volumes if one["spec"]["claimRef"]["namespace"] == own_namespace]
    assert own
    assert {one["spec"]["persistentVolumeReclaimPolicy"] for one in own} == {"Retain"}


@pytest.mark.parametrize("point", DISK_FAULT_POINTS)
def test_the_controller_may_die_while_a_home_is_listed(
    machine: Machine, access: Access, fault_file: Path, point: FaultPoint
) -> None:
    reservation = point.story.begin(machine, access)
    machine.ssh(reservation, f"echo {WORDS} > ~/{point.name} && sync")
    fault_file.write_text(point.name)
    machine.run("cancel", reservation, "--yes")
    wait_for(lambda: not fault_file.exists(), f"{point.name} to be reached")
    wait_for(lambda: machine.ask("disk", "show", "survives")["state"] == "available", "a free disk")
    assert read(machine, "h100", "survives", point.name) == WORDS


def test_rows_and_claims_agree(machine: Machine) -> None:
    write_and_cancel(machine, "h100", "agreed", "kept.txt")
    wait_for(lambda: machine.ask("disk", "show", "agreed")["state"] == "available", "a free disk")
    checked = machine.ask("admin", "disks", "check")
    assert checked["orphaned_db_active"] == 0
    assert checked["aws_volumes"] == checked["db_records"] == checked["synced"]


def test_a_stop_keeps_the_disk_and_the_time(machine: Machine) -> None:
    check_that_a_stop_keeps_the_disk_and_the_time(machine, "h100", 2)
