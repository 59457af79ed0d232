"""Cgroups of dev servers, on the files that a cgroup has; and on real ones, where gpu-dev may make them.

`GPU_DEV_TEST_CGROUP` names the folder of a real cgroup v2 that is ours to divide.
"""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from gpudev.adapters.local.cgroups import ALL_CONTROLLERS, Cgroups, Limits, find_delegated, open_cgroups
from gpudev.adapters.local.cluster import LocalCluster
from gpudev.adapters.local.sandbox.isolation import Isolation
from tests.support.local_cluster import Key, SshClient, create_ready, hear, make_config, make_spec, need

LIMITS = Limits(memory_bytes=64 * 1024**2, cpus=0.5, processes=20)


def make_cgroup(root: Path, controllers: str = "cpuset cpu io memory pids", pids: str = "") -> Path:
    """The files by which a cgroup is divided, as plain files."""
    root.mkdir(parents=True, exist_ok=True)
    (root / "cgroup.controllers").write_text(f"{controllers}\n")
    (root / "cgroup.subtree_control").write_text("")
    (root / "cgroup.procs").write_text(pids)
    return root


def make_process(folder: Path, mount: Path, own: str) -> Path:
    """What /proc says of a process in this cgroup."""
    folder.mkdir()
    (folder / "cgroup").write_text(f"4:memory:/\n0::{own}\n")
    (folder / "mountinfo").write_text(
        f"22 1 0:20 / /proc rw - proc proc rw\n32 23 0:28 / {mount} rw,nosuid - cgroup2 cgroup2 rw\n"
    )
    return folder


def test_a_delegated_cgroup_is_divided(tmp_path: Path) -> None:
    cgroups = open_cgroups(make_cgroup(tmp_path / "own"))
    assert cgroups == Cgroups(tmp_path / "own", ALL_CONTROLLERS)
    assert (tmp_path / "own" / "cgroup.subtree_control").read_text() == "+memory +cpu +pids"


def test_our_own_processes_make_room_first(tmp_path: Path) -> None:
    root = make_cgroup(tmp_path / "own", pids="4711\n")
    assert open_cgroups(root) is not None
    assert (root / "gpu-dev-control" / "cgroup.procs").read_text() == "4711"


def test_what_a_cgroup_cannot_limit_is_left_out(tmp_path: Path) -> None:
    assert open_cgroups(make_cgroup(tmp_path / "some", "hugetlb pids")) == Cgroups(
        tmp_path / "some", ("pids",)
    )
    assert open_cgroups(make_cgroup(tmp_path / "none", "hugetlb")) is None
    assert open_cgroups(tmp_path / "nothing") is None


def test_a_server_is_limited_and_its_cgroup_goes_with_it(tmp_path: Path) -> None:
    cgroups = Cgroups(make_cgroup(tmp_path / "own"), ALL_CONTROLLERS)
    cgroups.enter("7f3a91c2", LIMITS)
    server = tmp_path / "own" / "gpu-dev-server-7f3a91c2"
    written = {file.name: file.read_text() for file in server.iterdir()}
    assert written == {
        "memory.max": "67108864",
        "cpu.max": "50000 100000",
        "pids.max": "20",
        "cgroup.procs": str(os.getpid()),
    }
    for file in server.iterdir():
        file.unlink()
    cgroups.sweep()
    assert not server.exists()


@pytest.mark.parametrize("own", ["/unit.service", "/unit.service/gpu-dev-control"])
def test_our_own_cgroup_is_used_where_it_is_delegated(tmp_path: Path, own: str) -> None:
    mount = tmp_path / "fs"
    unit = make_cgroup(mount / "unit.service")
    process = make_process(tmp_path / "process", mount, own)
    if os.geteuid() == 0:
        # Root may write to everybody's, so it takes systemd's mark.
        assert find_delegated(process) is None
        try:
            os.setxattr(unit, "user.delegate", b"1")
        except OSError:
            pytest.skip("the file system of temporary files has no extended attributes")
    assert find_delegated(process) == unit


def test_where_there_is_no_cgroup_v2_there_is_none_to_use(tmp_path: Path) -> None:
    process = make_process(tmp_path / "process", tmp_path / "fs", "/elsewhere")
    assert find_delegated(process) is None
    (process / "mountinfo").write_text("32 23 0:28 / /sys/fs/cgroup rw - cgroup cgroup rw,memory\n")
    assert find_delegated(process) is None
    assert find_delegated(tmp_path / "no-process") is None


@pytest.fixture
def real_root() -> Path:
    named = os.environ.get("GPU_DEV_TEST_CGROUP")
    if not named:
        pytest.skip("GPU_DEV_TEST_CGROUP names no cgroup v2")
    return Path(named)


FORK_MANY = """
import os, signal
children = 0
try:
    for _ in range(100):
        if os.fork() == 0:
            signal.pause()
        children += 1
except BlockingIOError:
    pass
print(children, flush=True)
os.killpg(0, 9)
"""
TAKE_MEMORY = "x = bytearray(256 * 1024**2)"


@pytest.mark.parametrize(
    "program,outcome",
    [pytest.param(FORK_MANY, "19", id="processes"), pytest.param(TAKE_MEMORY, "", id="memory")],
)
def test_a_real_cgroup_stops_what_takes_too_much(real_root: Path, program: str, outcome: str) -> None:
    cgroups = open_cgroups(real_root)
    assert cgroups is not None
    enter = (
        "import sys; from pathlib import Path\n"
        "from gpudev.adapters.local.cgroups import Cgroups\n"
        "from gpudev.adapters.local.cgroups import Limits\n"
        f"Cgroups(Path({str(cgroups.root)!r}), {cgroups.controllers!r}).enter('test', {LIMITS!r})\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", enter + program],
        capture_output=True,
        text=True,
        start_new_session=True,
        check=False,
    )
    assert (done.returncode, done.stdout.strip()) == (-9, outcome), done.stderr
    cgroups.sweep()
    assert not list(cgroups.root.glob("gpu-dev-server-*"))


@pytest.mark.anyio
@pytest.mark.parametrize("isolation", list(Isolation), ids=str)
async def test_a_dev_server_has_limits(
    state_dir: Path, isolation: Isolation, key: Key, tmp_path: Path
) -> None:
    config = replace(
        make_config(state_dir, need(isolation)),
        cgroups=Cgroups(make_cgroup(tmp_path / "cgroup"), ALL_CONTROLLERS),
    )
    async with LocalCluster(config) as cluster:
        server = await create_ready(cluster, make_spec(key))
        client = SshClient(server, key, tmp_path)
        limits = (await client.run("ulimit -c; ulimit -Hn; ulimit -u")).out.split()
        shell = await client.start_shell()
        greeting = await hear(shell, "open files")
        shell.kill()
        await shell.wait()
        await cluster.delete_server(server.reservation_id, server.uid)
    assert limits[0] == "0"
    assert int(limits[1]) <= 65536
    assert (limits[2] == "4096") is (isolation is Isolation.BUBBLEWRAP)
    assert "1 GiB of memory, 1 CPU" in greeting
    folder = tmp_path / "cgroup" / f"gpu-dev-server-{server.reservation_id[:8]}"
    assert (folder / "pids.max").read_text() == "4096"
    assert int((folder / "cgroup.procs").read_text()) > 0
