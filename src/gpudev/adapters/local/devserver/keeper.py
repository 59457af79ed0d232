"""The keeper of one dev server: it starts the server, stays outside as its parent, and reaps.

It is a fork of the zygote, or this module run as a program where there is no zygote. From the start it
is in a session of its own, so that neither a terminal's Ctrl-C nor the end of the control plane reaches
it. It writes down which process stands for the server before that can serve anybody.
"""

from __future__ import annotations

import asyncio
import logging
import os
import pwd
import signal
import socket
import sys
from collections.abc import Callable
from pathlib import Path

from gpudev.adapters.local.cgroups import apply_rlimits, limits_of
from gpudev.adapters.local.devserver import preload  # noqa: F401 - imported for its effect
from gpudev.adapters.local.devserver.devserver import DevServer, SessionSettings, serve
from gpudev.adapters.local.devserver.environment import (
    Account,
    build_environment,
    choose_shell,
    compose_greeting,
)
from gpudev.adapters.local.devserver.order import SERVING, OrderDescriptors, StartOrder
from gpudev.adapters.local.devserver.server_files import (
    list_sandbox_files,
    prepare_home,
    prepare_workspace,
    write_gang_files,
)
from gpudev.adapters.local.disk_folders import find_home
from gpudev.adapters.local.processes import linux
from gpudev.adapters.local.processes.identity import ProcessIdentity, end_descendants, identify
from gpudev.adapters.local.processes.linux import drop_priority
from gpudev.adapters.local.record import Record, ServerProcesses
from gpudev.adapters.local.records import Records, ServerFiles
from gpudev.adapters.local.sandbox.holder import Namespaces, enter_sandbox, start_holder
from gpudev.adapters.local.sandbox.isolation import Isolation
from gpudev.adapters.local.sandbox.sandbox import HOME, OWN_FILES, WORKSPACE, Sandbox, choose_owner
from gpudev.adapters.local.server_processes import end_server
from gpudev.domain.errors import Defect
from gpudev.domain.server import LOGIN

_UMASK = 0o022
"""What people expect, whatever the control plane runs with."""


def keep(order: StartOrder, descriptors: OrderDescriptors) -> int:
    """Start the server of this order and return when it has ended.

    The server itself is a fork that comes back from here too, when it has nothing more to serve.
    """
    records = Records(order.state_dir)
    files = records.files_of(order.key)
    _speak_into(files.log_path)
    linux.become_subreaper()
    linux.name_this_process("gpu-dev-keeper")
    drop_priority()
    record = files.find_record()
    if record is None:
        raise Defect("record_missing", key=order.key)
    if order.cgroups is not None:
        order.cgroups.enter(order.key, limits_of(record.spec.share))
    home = find_home(order.state_dir, record)
    if order.isolation is Isolation.BUBBLEWRAP:
        return _keep_sandboxed(order, descriptors, record, files, home)
    return _keep_plain(order, descriptors, record, files, home)


def _keep_sandboxed(
    order: StartOrder, descriptors: OrderDescriptors, record: Record, files: ServerFiles, home: Path
) -> int:
    sandbox = _plan_sandbox(order, record, files, home)
    owner = sandbox.user_id if sandbox.is_made_by_root else None
    prepare_home(home, owner)
    prepare_workspace(files.workspace, owner)
    holder = start_holder(sandbox, order.bubblewrap)
    namespaces = Namespaces(holder.init_pid)
    namespaces.enter_for_children()
    gate = _Gate()
    server = os.fork()
    if server == 0:
        # The lifeline stays open here and nowhere else.
        enter_sandbox(namespaces, sandbox)
        account = Account(LOGIN, HOME, WORKSPACE, sandbox.shell)
        return _serve(_plan_server(order, record, account), descriptors, gate)
    namespaces.close()
    os.close(holder.lifeline)
    processes = _write_down(files, holder.init_pid, server, Isolation.BUBBLEWRAP)
    _let_go(descriptors, gate)
    os.waitpid(server, 0)
    end_server(record.name, processes)
    holder.monitor.wait()
    return 0


def _keep_plain(
    order: StartOrder, descriptors: OrderDescriptors, record: Record, files: ServerFiles, home: Path
) -> int:
    prepare_home(home, None)
    prepare_workspace(files.workspace, None)
    programs = str(write_gang_files(record.gang, files.gang_directory)) if record.gang else ""
    signal.signal(signal.SIGTERM, _stop)
    keeper = os.getpid()
    gate = _Gate()
    server = os.fork()
    if server == 0:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        linux.die_with_parent(signal.SIGKILL)
        os.chdir(home)
        user = pwd.getpwuid(os.getuid()).pw_name
        account = Account(user, str(home), str(files.workspace), choose_shell(), programs)
        return _serve(_plan_server(order, record, account), descriptors, gate)
    try:
        _write_down(files, keeper, server, Isolation.NONE)
        _let_go(descriptors, gate)
        while os.wait()[0] != server:
            pass
    except _Stopped:
        pass
    finally:
        end_descendants(keeper)
    return 0


class _Gate:
    """Keeps the SSH server waiting until it is written down, and from ever serving if that fails."""

    def __init__(self) -> None:
        self._read, self._write = os.pipe()

    def open(self) -> None:
        os.close(self._read)
        os.write(self._write, b"\n")
        os.close(self._write)

    def pass_through(self) -> bool:
        os.close(self._write)
        is_open = os.read(self._read, 1) != b""
        os.close(self._read)
        return is_open


class _Stopped(Exception):
    """The cluster asked for the end."""


def _stop(_signal: int, _frame: object) -> None:
    raise _Stopped


def _plan_sandbox(order: StartOrder, record: Record, files: ServerFiles, home: Path) -> Sandbox:
    return Sandbox(
        name=record.name,
        user_id=choose_owner(home, record.id8),
        shell=choose_shell(),
        home=home,
        workspace=files.workspace,
        hidden=order.state_dir,
        device_paths=tuple(dict.fromkeys(path for gpu in record.gpus for path in gpu.device_paths)),
        read_only_paths=order.read_only_paths,
        other_names=tuple(name for name in record.spec.member_names if name != record.name),
        files=list_sandbox_files(record.gang, OWN_FILES) if record.gang else {},
    )


def _plan_server(order: StartOrder, record: Record, account: Account) -> DevServer:
    environment = build_environment(record, account, cores=len(os.sched_getaffinity(0)))
    enforced = order.cgroups.controllers if order.cgroups else ()
    greeting = compose_greeting(record, account, order.isolation, enforced)
    return DevServer(
        key=record.key,
        limits=limits_of(record.spec.share),
        has_own_user=order.isolation is Isolation.BUBBLEWRAP,
        host_key=record.host_key,
        public_keys=(*record.spec.ssh_public_keys, *([record.gang.public_key] if record.gang else [])),
        sessions=SessionSettings(account, environment, greeting),
    )


def _serve(server: DevServer, descriptors: OrderDescriptors, gate: _Gate) -> int:
    if not gate.pass_through():
        return 1
    linux.name_this_process("gpu-dev-ssh")
    linux.hide_from_debuggers()
    apply_rlimits(server.limits, has_own_user=server.has_own_user)
    os.umask(_UMASK)
    listener = socket.socket(fileno=descriptors.listener)
    asyncio.run(serve(server, listener, _say_serving(descriptors.status)))
    return 0


def _say_serving(status: int) -> Callable[[], None]:
    def say() -> None:
        os.write(status, SERVING)
        os.close(status)

    return say


def _write_down(files: ServerFiles, root: int, ssh_server: int, isolation: Isolation) -> ServerProcesses:
    processes = ServerProcesses(_identify(root), _identify(ssh_server), isolation)
    files.write_processes(processes)
    return processes


def _identify(pid: int) -> ProcessIdentity:
    identity = identify(pid)
    if identity is None:
        raise Defect("process_ended_early", pid=pid)
    return identity


def _let_go(descriptors: OrderDescriptors, gate: _Gate) -> None:
    """From here on the server is on its own."""
    os.close(descriptors.listener)
    os.close(descriptors.status)
    gate.open()


def _speak_into(log: Path) -> None:
    """Standard output and error go to the server's log, and there is no input."""
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for target in (1, 2):
        os.dup2(descriptor, target)
    os.close(descriptor)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    logging.basicConfig(
        stream=sys.stderr, level=logging.WARNING, format="%(asctime)s %(message)s", force=True
    )


def main() -> int:
    """`python -m gpudev.adapters.local.devserver.keeper ORDER LISTENER STATUS`, in a session of its own."""
    order, listener, status = sys.argv[1:]
    if os.fork() != 0:
        return 0
    return keep(StartOrder.from_json(order), OrderDescriptors(int(listener), int(status)))


if __name__ == "__main__":
    sys.exit(main())
