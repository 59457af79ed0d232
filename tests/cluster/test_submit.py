"""`gpu-dev submit` on a real Kubernetes: results and exit code come back, also when a connection is cut."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.kubernetes.access import Access
from tests.support.kubernetes_machine import running_on_kubernetes
from tests.support.machine import Machine, wait_for
from tests.support.submitting import submitting

SCRIPT = """\
echo begun
until [ -e go ] || [ -n "$1" ]; do sleep 0.1; done
echo "$COLOUR" > result.txt
echo ended
exit 7
"""


@pytest.fixture(scope="module")
def machine(access: Access, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    with (
        access.namespace() as namespace,
        running_on_kubernetes(access, namespace, tmp_path_factory.mktemp("product")) as running,
    ):
        yield running


@pytest.fixture(autouse=True)
def _leave_nothing(machine: Machine) -> Iterator[None]:
    yield
    machine.run("cancel", "--all", "--yes", check=False)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "script.sh").write_text(SCRIPT)
    return folder


def test_the_file_and_the_exit_code_come_back(machine: Machine, project: Path) -> None:
    asked = ("submit", "-t", "h100", "-n", "whole", "--env", "COLOUR=blue", "-C", str(project))
    done = machine.run(*asked, "sh", "script.sh", "at once", check=False)
    assert (done.returncode, done.stdout) == (7, "begun\nended\n"), done.stderr
    assert (project / "result.txt").read_text() == "blue\n"
    wait_for(lambda: machine.show("whole")["status"] == "cancelled", "the GPUs to be given back")


def test_a_connection_that_is_cut_is_made_again(machine: Machine, project: Path) -> None:
    asked = ("-t", "h100", "-n", "cut", "--env", "COLOUR=green", "-C", str(project))
    with submitting(machine, *asked, "sh", "script.sh") as run:
        run.wait_for_output("begun\n")
        run.cut()
        there = f"submit/{machine.show('cut')['job_id'][:8]}/files/go"
        assert machine.ssh("cut", f"touch {there}").returncode == 0
        assert run.end() == 7, run.errors
        assert run.output == "begun\nended\n"
    assert (project / "result.txt").read_text() == "green\n"
