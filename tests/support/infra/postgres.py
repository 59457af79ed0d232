"""PostgreSQL servers that run by the chart's own scripts, configuration and certificate."""

from __future__ import annotations

import base64
import os
import signal
import socket
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from gpudev.adapters.local.database.postgres_programs import Account, choose_account
from tests.support.infra.chart import CHART, Rendering, render
from tests.support.infra.tls_postgres import get_tls_postgres, programs_in

SCRIPTS = CHART / "files" / "postgres"
PASSWORDS = {"POSTGRES_PASSWORD": "correct'horse", "REPLICATION_PASSWORD": "battery"}
APP_PASSWORD = "sta\\ple"
HOST = "localhost"
"""One of the names in the chart's certificate."""
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
        return self.dsn_of("gpudev")

    def dsn_of(self, user: str) -> str:
        """Without its password. Clients verify the server as those of the chart do."""
        tls = f"sslmode=verify-full&sslrootcert={self.environment['PGSSLROOTCERT']}"
        return f"postgresql://{user}@{HOST}:{self.port}/gpudev?{tls}"

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
def prepared_server(
    rendering: Rendering, kind: str, folder: Path, *, primary_port: int, port: int
) -> Iterator[Server]:
    """A server that is not started yet, and that does not outlive the test."""
    folder.mkdir(mode=0o700)
    account = choose_account(folder / "pgdata")
    (pod,) = (pod for pod in rendering.pods if pod.owner == f"StatefulSet/postgres-{kind}")
    tls = write_certificate(rendering, folder / "tls")
    account.own_tree(tls)
    for path in (folder, _made(folder / "socket"), _made(folder / "tmp")):
        account.own(path)
    (container,) = pod.spec["containers"]
    plain = {entry["name"]: entry["value"] for entry in container["env"] if "value" in entry}
    here = {
        "PATH": f"{programs_in(get_tls_postgres())}:{os.defpath}",
        "PGDATA": str(folder / "pgdata"),
        "CONFIG_DIR": str(SCRIPTS),
        "TLS_DIR": str(tls),
        "PGSSLROOTCERT": str(tls / "ca.crt"),
        "SOCKET_DIR": str(folder / "socket"),
        "TMPDIR": str(folder / "tmp"),
        "PORT": str(port),
        "PRIMARY_HOST": HOST,
        "PRIMARY_PORT": str(primary_port),
    }
    server = Server(kind, folder, port, {**plain, **PASSWORDS, **here}, account)
    try:
        yield server
    finally:
        server.stop()


@contextmanager
def prepared_pair(*settings: str) -> Iterator[tuple[Server, Server]]:
    """The primary and the replica, neither of them started. Short paths: sockets have them."""
    rendering = render("generic", settings)
    port = choose_port()
    with TemporaryDirectory(prefix="gpu-dev-pair-") as top, ExitStack() as stack:
        primary, replica = (
            stack.enter_context(
                prepared_server(rendering, kind, Path(top, kind), primary_port=port, port=own_port)
            )
            for kind, own_port in (("primary", port), ("replica", choose_port()))
        )
        yield primary, replica


def write_certificate(rendering: Rendering, folder: Path) -> Path:
    """As the volumes of the chart's pods have it."""
    _made(folder)
    for name, value in rendering.get("Secret", "postgres-tls")["data"].items():
        file = folder / name
        file.touch(mode=0o600)
        file.write_bytes(base64.b64decode(value))
    return folder


def _made(folder: Path) -> Path:
    folder.mkdir(mode=0o700)
    return folder
