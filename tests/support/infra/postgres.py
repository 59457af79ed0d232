"""PostgreSQL servers that run by the chart's own scripts and configuration, with the embedded programs."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from gpudev.adapters.local.database.postgres_programs import Account, choose_account, find_programs
from tests.support.infra.chart import CHART, Pod, render

SCRIPTS = CHART / "files" / "postgres"
PASSWORDS = {
    "POSTGRES_PASSWORD": "correct'horse",
    "APP_PASSWORD": "sta\\ple",
    "REPLICATION_PASSWORD": "battery",
}
_END_SECONDS = 30


def choose_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


@dataclass(slots=True)
class Server:
    """One server as a pod of the chart would start it; what its environment says comes from the chart."""

    kind: str
    folder: Path
    port: int
    environment: Mapping[str, str]
    account: Account
    process: subprocess.Popen[bytes] | None = None

    @property
    def dsn(self) -> str:
        return f"postgresql://gpudev@127.0.0.1:{self.port}/gpudev"

    @property
    def log(self) -> str:
        return (self.folder / "log").read_text(errors="replace")

    def start(self) -> None:
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                [*self.account.prefix, "/bin/sh", str(SCRIPTS / "start.sh"), self.kind],
                env=self.environment,
                cwd="/",
                stdout=log,
                stderr=log,
            )

    def kill(self) -> None:
        """As a node dies: at once, with everything that it had in memory."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        self._end(signal.SIGINT)

    def promote(self) -> None:
        self.run("pg_ctl", "promote", "--wait", f"--pgdata={self.environment['PGDATA']}")

    def run(self, *command: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """A program or script beside the server, as `kubectl exec` or a Job runs it."""
        done = subprocess.run(
            [*self.account.prefix, *command],
            env={**self.environment, **environment},
            cwd="/",
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise subprocess.CalledProcessError(done.returncode, command, done.stdout, done.stderr)
        return done

    def _end(self, number: signal.Signals) -> None:
        if self.process is not None:
            self.process.send_signal(number)
            self.process.wait(_END_SECONDS)
            self.process = None


@contextmanager
def prepared_server(pod: Pod, folder: Path, *, primary_port: int, port: int) -> Iterator[Server]:
    """A server that is not started yet, and that does not outlive the test."""
    folder.mkdir(mode=0o700)
    account = choose_account(folder / "pgdata")
    for path in (folder, _made(folder / "socket"), _made(folder / "tmp")):
        account.own(path)
    (container,) = pod.spec["containers"]
    plain = {entry["name"]: entry["value"] for entry in container["env"] if "value" in entry}
    here = {
        "PATH": f"{find_programs()}:{os.defpath}",
        "PGDATA": str(folder / "pgdata"),
        "CONFIG_DIR": str(_without_tls(folder / "config", account)),
        # The embedded programs are built without it; that the chart asks for it is tested by what it renders.
        "TLS_DIR": "",
        "PGSSLMODE": "disable",
        "SOCKET_DIR": str(folder / "socket"),
        "TMPDIR": str(folder / "tmp"),
        "PORT": str(port),
        "PRIMARY_HOST": "127.0.0.1",
        "PRIMARY_PORT": str(primary_port),
    }
    server = Server(pod.owner.rpartition("-")[2], folder, port, {**plain, **PASSWORDS, **here}, account)
    try:
        yield server
    finally:
        server.stop()


@contextmanager
def prepared_pair(*settings: str) -> Iterator[tuple[Server, Server]]:
    """The primary and the replica, neither of them started. Short paths: sockets have them."""
    pods = {pod.owner: pod for pod in render("generic", settings).pods}
    port = choose_port()
    with TemporaryDirectory(prefix="gpu-dev-pair-") as top, ExitStack() as stack:
        primary, replica = (
            stack.enter_context(
                prepared_server(
                    pods[f"StatefulSet/postgres-{kind}"], Path(top, kind), primary_port=port, port=own_port
                )
            )
            for kind, own_port in (("primary", port), ("replica", choose_port()))
        )
        yield primary, replica


def _without_tls(folder: Path, account: Account) -> Path:
    """The chart's configuration, but for connections over the network that need no TLS."""
    shutil.copytree(SCRIPTS, folder)
    rules = folder / "pg_hba.conf"
    rules.write_text(rules.read_text().replace("hostssl", "host"))
    account.own_tree(folder)
    return folder


def _made(folder: Path) -> Path:
    folder.mkdir(mode=0o700)
    return folder
