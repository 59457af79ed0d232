"""The chart's control plane, really installed: used from outside, upgraded, and killed pod by pod."""

from __future__ import annotations

import json
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.support.infra.chart import CHART
from tests.support.installation import Installation, OpenShell, prepared_installation
from tests.support.kubernetes.cluster import Cluster
from tests.support.kubernetes.control_plane_image import ControlPlaneImage
from tests.support.machine import Machine, wait_for

CHECKOUT = CHART.parents[2]
DEPENDENCIES = ("pyproject.toml", "constraints.txt")
PRESENT = "gpu-dev.test/control-plane:0.2.0"
PARTS = ("api-service", "job-processor", "ssh-proxy", "postgres")


@dataclass(frozen=True, slots=True)
class Running:
    """An installation, its user, and a reservation with a shell that stays open all the time."""

    installation: Installation
    machine: Machine
    reservation: str
    shell: OpenShell


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    # Not below pytest's own temporary folder, which it keeps for three runs: images are large.
    with TemporaryDirectory(prefix="gpu-dev-installed-") as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.fixture(scope="module")
def first_chart(folder: Path) -> Path:
    """The checkout as it was when people were first told how to install the chart."""
    history = git("log", "--reverse", "--format=%H", "--", "docs/howto/install-chart.md").split()
    if not history:
        pytest.skip("The history of this checkout is not here.")
    archive = folder / "first.tar"
    git("archive", "--output", str(archive), history[0], "deploy", "src", *DEPENDENCIES)
    with tarfile.open(archive) as tar:
        tar.extractall(folder / "first", filter="data")
    return folder / "first"


def git(*arguments: str) -> str:
    done = subprocess.run(
        ["git", "-C", str(CHECKOUT), *arguments], capture_output=True, text=True, check=True
    )
    return done.stdout


@pytest.fixture(scope="module")
def upgraded(cluster: Cluster, folder: Path, first_chart: Path) -> Iterator[Running]:
    """Installed at the first version, in use, and then brought to the present one."""
    before = ControlPlaneImage("0.1.0", first_chart)
    now = ControlPlaneImage("0.2.0", CHECKOUT)
    with prepared_installation(cluster, folder, before, now) as installation:
        # As Helm 3 waited, which was there then: the replica of that chart fails until its primary answers,
        # and a newer Helm gives an installation up when a container has failed a few times.
        installation.install(first_chart / "deploy" / "helm" / "gpu-dev", before, wait="--wait=legacy")
        home = folder / "home"
        home.mkdir()
        machine = installation.add_person(home)
        reservation = machine.reserve("-t", "h100")
        shell = OpenShell.on(machine, reservation)
        assert shell.echoes("before the upgrade")
        installation.upgrade(CHART, now)
        yield Running(installation, machine, reservation, shell)
        shell.close()


def test_an_upgrade_from_the_first_chart_keeps_running_reservations(upgraded: Running) -> None:
    assert upgraded.machine.show(upgraded.reservation)["status"] == "active"
    assert upgraded.shell.echoes("after the upgrade")
    assert upgraded.installation.list_images("app=api-service") == {PRESENT}
    assert upgraded.installation.list_images("app=job-processor") == {PRESENT}


def test_an_upgrade_from_the_first_chart_takes_the_tables_from_the_service(upgraded: Running) -> None:
    """Once the pods of the first version are gone."""
    expected = {"gpudev_app|t", "replicator|t"}
    assert wait_for(lambda: upgraded.installation.list_clients() == expected, "the role that owns nothing")


def test_two_of_each_run(upgraded: Running) -> None:
    counts = {part: len(upgraded.installation.list_pods(f"app={part}")) for part in PARTS}
    assert counts == dict.fromkeys(PARTS, 2)


def test_a_reservation_goes_through_from_outside(upgraded: Running) -> None:
    machine = upgraded.machine
    reservation = machine.reserve("-t", "a100")
    assert machine.ssh(reservation, "exit 7").returncode == 7
    machine.run("cancel", reservation, "--yes")
    assert machine.show(reservation)["status"] == "cancelled"


def test_ssh_goes_through_the_proxy(upgraded: Running) -> None:
    assert through_the_proxy(upgraded, "echo $USER") == "dev\n"


def through_the_proxy(running: Running, command: str) -> str:
    """By an address that leads nowhere, so that it is the proxy who knows the way."""
    config = running.machine.home / ".gpu-dev" / f"{running.reservation[:8]}-sshconfig"
    proxy = running.installation.find_address("ssh-proxy")
    words = f"{sys.executable} -m gpudev.cli.main ssh-proxy --proxy-url {proxy} {running.reservation}"
    options = ["-o", "HostName=192.0.2.1", "-o", f"ProxyCommand={words}"]
    done = subprocess.run(
        ["ssh", "-F", config, *options, f"gpu-dev-{running.reservation[:8]}", command],
        env=running.machine.environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return done.stdout


@pytest.mark.parametrize("part", PARTS)
def test_the_loss_of_each_pod_in_turn_is_survived(upgraded: Running, part: str) -> None:
    installation = upgraded.installation
    for pod in sorted(installation.list_pods(f"app={part}")):
        installation.kill(pod)
        wait_for(lambda: goes_through(upgraded.machine), f"a reservation without {pod}")
        assert upgraded.machine.show(upgraded.reservation)["status"] == "active"
        assert upgraded.shell.echoes(f"without {pod}")
        assert through_the_proxy(upgraded, "echo there") == "there\n"
        installation.wait_until_whole()


def goes_through(machine: Machine) -> bool:
    """Whether somebody gets a dev server now."""
    done = machine.run("reserve", "--yes", "-t", "a100", "--for", "5m", "--json", check=False)
    if done.returncode == 0:
        machine.run("cancel", json.loads(done.stdout)["reservation_id"], "--yes")
    return done.returncode == 0
