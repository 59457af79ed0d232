"""What one can do in a dev server of this machine, with the OpenSSH client as everybody has it."""

from __future__ import annotations

import asyncio
import os
import pwd
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from gpudev.adapters.local.cluster import LocalCluster
from gpudev.adapters.local.devserver.login import (
    TerminalRequest,
    become_controlling_terminal,
    open_terminal,
    set_size,
)
from gpudev.adapters.local.processes.descriptors import read_some
from gpudev.adapters.local.sandbox.isolation import Isolation
from gpudev.domain.notices import Notice
from gpudev.domain.server import ServerSpec
from gpudev.texts.fact import fact
from tests.support.local_cluster import (
    PATIENCE_SECONDS,
    Key,
    SshClient,
    create_ready,
    end_session,
    hear,
    make_key,
    make_spec,
    need,
    open_cluster,
    run_program,
    say,
)

pytestmark = pytest.mark.anyio


@dataclass(frozen=True, slots=True)
class World:
    """Two ready servers of one cluster; most tests need only the first."""

    cluster: LocalCluster
    isolation: Isolation
    client: SshClient
    other: SshClient
    spec: ServerSpec
    state_dir: Path
    key: Key

    @property
    def prompt(self) -> str:
        return ":~$ " if self.is_sandboxed or os.getuid() else ":~# "

    @property
    def is_sandboxed(self) -> bool:
        return self.isolation is Isolation.BUBBLEWRAP


@pytest.fixture(scope="module", params=list(Isolation), ids=str)
async def world(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[World]:
    isolation = need(request.param)
    directory = tmp_path_factory.mktemp("world")
    key = make_key(directory)
    async with open_cluster(directory / "state", isolation) as cluster:
        specs = [make_spec(key, GREETING="hello world"), make_spec(key)]
        servers = [await create_ready(cluster, spec) for spec in specs]
        client, other = (SshClient(server, key, directory) for server in servers)
        yield World(cluster, isolation, client, other, specs[0], directory / "state", key)


async def test_one_is_dev_at_home(world: World) -> None:
    done = await world.client.run("whoami; pwd")
    own = [pwd.getpwuid(os.getuid()).pw_name, str(world.state_dir / "homes" / world.spec.reservation_id[:8])]
    assert done.out.split() == (["dev", "/home/dev"] if world.is_sandboxed else own)


async def test_nobody_else_can_log_in(world: World) -> None:
    assert (await world.client.run("true", user="root")).code == 255


async def test_the_environment_describes_the_reservation(world: World) -> None:
    done = await world.client.run("env")
    seen = dict(line.split("=", 1) for line in done.out.splitlines())
    assert seen["GREETING"] == "hello world"
    assert seen["CUDA_VISIBLE_DEVICES"] == seen["NVIDIA_VISIBLE_DEVICES"] == "simulated-t4-0-0"
    assert seen["NVIDIA_DRIVER_CAPABILITIES"] == "compute,utility"
    assert seen["GPU_DEV_RESERVATION_ID"] == world.spec.reservation_id
    assert seen["GPU_DEV_GPU_TYPE"] == "t4"
    assert seen["GPU_DEV_SIMULATED"] == "1"
    assert seen["OMP_NUM_THREADS"] == "1"
    assert seen["HF_HOME"].startswith("/workspace/" if world.is_sandboxed else str(world.state_dir))


@pytest.mark.parametrize("code", [0, 1, 42, 255])
async def test_exit_codes_are_exact(world: World, code: int) -> None:
    assert (await world.client.run(f"exit {code}")).code == code


async def test_a_command_that_a_signal_ended_is_255(world: World) -> None:
    assert (await world.client.run("kill -TERM $$")).code == 255


async def test_input_and_output_are_binary(world: World) -> None:
    data = bytes(range(256)) * 4096
    process = await asyncio.create_subprocess_exec(*world.client.command("cat"), stdin=-1, stdout=-1)
    async with asyncio.timeout(PATIENCE_SECONDS):
        out, _ = await process.communicate(data)
    assert out == data


@pytest.mark.parametrize("protocol", ["-O", "-s"], ids=["scp protocol", "sftp protocol"])
async def test_scp_both_ways(world: World, protocol: str, tmp_path: Path) -> None:
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "file").write_bytes(os.urandom(300_000))
    there = await world.client.copy(
        "scp", protocol, "-r", str(tmp_path / "tree"), f"{world.client.target}:copied"
    )
    back = await world.client.copy(
        "scp", protocol, "-r", f"{world.client.target}:copied", str(tmp_path / "back")
    )
    await world.client.run("rm -r copied")
    assert (there.code, back.code) == (0, 0), there.err + back.err
    assert (tmp_path / "back" / "file").read_bytes() == (tmp_path / "tree" / "file").read_bytes()


async def test_sftp(world: World) -> None:
    batch = b"mkdir made\nls\nrmdir made\n"
    done = await world.client.copy("sftp", "-b", "-", world.client.target, stdin=batch)
    assert done.code == 0, done.err
    assert "made" in done.out


async def test_a_local_port_is_forwarded(world: World) -> None:
    """The dev server's own SSH port, seen through a forward, greets as it does directly."""
    port = world.client.port
    done = await world.client.run("", "-W", f"127.0.0.1:{port}")
    assert done.out.startswith("SSH-2.0-gpudev")


async def test_a_unix_socket_is_forwarded_to_here(world: World, tmp_path: Path) -> None:
    here = tmp_path / "s"
    options = ("-o", "ExitOnForwardFailure=yes", "-L", f"{here}:127.0.0.1:{world.client.port}")
    session = await world.client.start("echo up; cat", *options)
    await hear(session, "up\n")
    reader, writer = await asyncio.open_unix_connection(here)
    async with asyncio.timeout(PATIENCE_SECONDS):
        assert (await reader.readline()).startswith(b"SSH-2.0-gpudev")
    writer.close()
    assert await end_session(session) == 0


async def test_a_remote_port_is_forwarded(world: World, tmp_path: Path) -> None:
    """A socket in the dev server that leads back to a listener of the test."""
    greeted = asyncio.Event()

    def greet(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        greeted.set()
        writer.close()

    async with await asyncio.start_server(greet, "127.0.0.1", 0) as listener:
        port = listener.sockets[0].getsockname()[1]
        options = ("-v", "-R", f"0:127.0.0.1:{port}")
        session = await world.client.start("cat", *options)
        said = await hear(session, "for remote forward")
        remote_port = said.rpartition("Allocated port ")[2].split()[0]
        await world.client.run(f"exec 3<>/dev/tcp/127.0.0.1/{remote_port}; cat <&3")
        assert greeted.is_set()
        assert await end_session(session) == 0


async def test_the_agent_is_forwarded(world: World, tmp_path: Path) -> None:
    agent = await asyncio.create_subprocess_exec("ssh-agent", "-D", "-a", tmp_path / "agent", stdout=-1)
    await hear(agent, "\n")
    try:
        environment = {**os.environ, "SSH_AUTH_SOCK": str(tmp_path / "agent")}
        adding = await asyncio.create_subprocess_exec("ssh-add", "-q", world.key.path, env=environment)
        assert await adding.wait() == 0
        command = world.client.command("ssh-add -L", "-A", "-o", f"IdentityAgent={tmp_path / 'agent'}")
        done = await run_program(*command)
        assert world.key.public.split()[1] in done.out
    finally:
        agent.terminate()
        await agent.wait()


async def test_a_terminal_has_a_size_a_greeting_and_a_login_shell(world: World) -> None:
    session = await world.client.start_shell()
    greeting = await hear(session, world.prompt)
    assert "1 simulated t4 on t4-0" in greeting
    assert "1 h" in greeting
    assert ("sudo" in greeting) == world.is_sandboxed
    assert ("NOT isolated" in greeting) != world.is_sandboxed
    await say(session, "shopt -q login_shell && tty && echo is-$((1+1)); exit 3")
    said = await hear(session, "is-2")
    assert "/dev/pts/" in said
    async with asyncio.timeout(PATIENCE_SECONDS):
        assert await session.wait() == 3


async def test_a_notice_is_shown_on_every_terminal(world: World) -> None:
    sessions = [await world.client.start_shell() for _ in range(2)]
    for session in sessions:
        await hear(session, world.prompt)
    notice = Notice("WARN_EXPIRES_IN_30MIN.txt", fact("words", words="30 minutes are left."))
    uid = world.cluster.snapshot().servers[world.spec.reservation_id].uid
    await world.cluster.tell(world.spec.reservation_id, uid, (notice,))
    for session in sessions:
        await hear(session, "30 minutes are left.")
        await say(session, "exit")
        await end_session(session)


async def test_ctrl_c_interrupts_and_the_shell_goes_on(world: World) -> None:
    session = await world.client.start_shell()
    await hear(session, world.prompt)
    await say(session, "sh -c 'echo go-$((1+1)); exec sleep 1000'")
    await hear(session, "go-2\r\n")
    assert session.stdin is not None
    session.stdin.write(b"\x03")
    await hear(session, world.prompt)
    await say(session, "echo code-$?; exit")
    await hear(session, "code-130")
    async with asyncio.timeout(PATIENCE_SECONDS):
        await session.wait()


async def test_a_client_that_goes_away_hangs_up_its_terminal(world: World) -> None:
    await world.client.run("mkfifo ~/told")
    session = await world.client.start_shell()
    await say(session, "trap 'echo hung up > ~/told; exit' HUP; echo set-$((1+1)); read")
    await hear(session, "set-2")
    session.kill()
    await session.wait()
    assert (await world.client.run("cat ~/told; rm ~/told")).out == "hung up\n"


async def test_a_background_job_does_not_hold_the_logout(world: World) -> None:
    session = await world.client.start_shell()
    await say(session, "(trap '' HUP; exec sleep 1000) & disown; exit")
    async with asyncio.timeout(PATIENCE_SECONDS):
        assert await session.wait() == 0


async def test_all_sessions_share_one_place(world: World) -> None:
    session = await world.client.start("echo shared > /tmp/$GPU_DEV_RESERVATION_ID; echo $$; cat")
    pid = (await hear(session, "\n")).strip()
    done = await world.client.run(
        f"cat /tmp/$GPU_DEV_RESERVATION_ID; rm /tmp/$GPU_DEV_RESERVATION_ID; kill -0 {pid}"
    )
    assert (done.code, done.out) == (0, "shared\n")
    await end_session(session)


async def test_sandboxes_do_not_see_each_other(world: World) -> None:
    if not world.is_sandboxed:
        pytest.skip("there is nothing to see without sandboxes")
    session = await world.other.start(
        "touch /tmp/secret /dev/shm/secret ~/secret; echo up; exec sleep 987654"
    )
    await hear(session, "up\n")
    done = await world.client.run("ls -A /tmp /dev/shm /home /home/dev; cat /proc/[0-9]*/cmdline")
    assert "secret" not in done.out
    assert "987654" not in done.out
    session.kill()
    await session.wait()


async def test_a_sandbox_does_not_see_the_state_nor_write_the_system(world: World) -> None:
    if not world.is_sandboxed:
        pytest.skip("without a sandbox everything is seen")
    done = await world.client.run(
        f"ls {world.state_dir} /root; touch /usr/x /etc/x; cat /etc/shadow; grep CapEff /proc/self/status"
    )
    assert "CapEff:\t0000000000000000" in done.out
    assert done.out.count("\n") == 1


async def test_a_terminal_follows_the_size_of_the_clients(world: World) -> None:
    ours, theirs = open_terminal(TerminalRequest((80, 24, 0, 0), {}))
    os.set_blocking(ours, False)
    session = await asyncio.create_subprocess_exec(
        *world.client.command("trap 'stty size; kill %1; exit' WINCH; stty size; sleep 1000 & wait", "-tt"),
        stdin=theirs,
        stdout=theirs,
        start_new_session=True,
        preexec_fn=become_controlling_terminal,
    )
    os.close(theirs)
    try:
        await read_until(ours, b"24 80")
        set_size(ours, (132, 43, 0, 0))
        await read_until(ours, b"43 132")
    finally:
        os.close(ours)
        await session.wait()


async def read_until(descriptor: int, words: bytes) -> None:
    said = b""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while words not in said:
            said += await read_some(descriptor)
