"""gpu-dev on this machine, as `up` and `down` see it: run it, start it in the background, stop it."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from gpudev.adapters.local.processes.identity import holding
from gpudev.adapters.local.processes.linux import raise_priority
from gpudev.adapters.local.server_processes import stop_all_servers
from gpudev.adapters.local.state import StateFolder
from gpudev.adapters.local.supervisor import ENVIRONMENT_NAME, ReadyPipe
from gpudev.bootstrap.up import Ready, UpOptions
from gpudev.domain.errors import GpuDevError
from gpudev.settings import Settings
from gpudev.settings.servers import default_state_dir

_STOP_SECONDS = 30


@dataclass(frozen=True, slots=True)
class OneMachine:
    """One state folder, and the control plane that may be running on it."""

    state: StateFolder
    settings: Settings

    @classmethod
    def at(cls, state_dir: Path | None) -> OneMachine:
        settings = Settings()
        chosen = state_dir or settings.local.state_dir or default_state_dir()
        return cls(StateFolder(chosen.absolute()), settings)

    @property
    def login_file(self) -> Path:
        return self.state.login_file

    def find_api_url(self) -> str | None:
        """Where the API answers; None if no control plane runs."""
        running = self.state.find_running()
        return running.api_url if running else None

    def run(self, options: UpOptions, announce: Callable[[Ready], None]) -> None:
        """Run until interrupted; `announce` is called once everything answers."""
        from gpudev.bootstrap.control_plane import run_control_plane  # noqa: PLC0415 - see `bootstrap.up`

        asyncio.run(run_control_plane(options, self.settings, self.state, announce))

    def start_detached(self, options: UpOptions) -> Ready:
        """Run as a process of its own, and return once it is ready."""
        self.state.prepare()
        return _start_detached(options, self.state)

    def stop(self) -> bool:
        """Ask a running control plane to end and wait until it has; False if none runs."""
        running = self.state.find_running()
        if running is None:
            return False
        with holding(running.process) as process:
            if process is not None:
                process.send_signal(signal.SIGTERM)
            if process is not None and not process.wait_blocking(_STOP_SECONDS):
                raise GpuDevError(
                    "did_not_stop",
                    pid=running.process.pid,
                    seconds=_STOP_SECONDS,
                    logs=str(self.state.logs),
                    code="stop_timed_out",
                )
        return True

    def stop_servers(self) -> int:
        """End the dev servers that are left; their homes stay. For when no control plane runs."""
        return stop_all_servers(self.state.path)


def _start_detached(options: UpOptions, state: StateFolder) -> Ready:
    argv = [sys.executable, "-P", "-m", "gpudev.cli.main", "up", "--state-dir", str(state.path)]
    argv += ["--port", str(options.port)] if options.port is not None else []
    argv += ["--fleet", options.fleet] if options.fleet else []
    argv += ["--cluster", options.cluster] if options.cluster else []
    pipe = ReadyPipe.open()
    log = state.logs / "up.log"
    with log.open("wb") as output:
        # Not asyncio's: a loop that closes kills the processes that it started.
        process = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env={**os.environ, ENVIRONMENT_NAME: str(pipe.write_end)},
            pass_fds=(pipe.write_end,),
            start_new_session=True,
        )
    raise_priority(process.pid)
    pipe.close_write_end()
    if words := pipe.read():
        return Ready(**json.loads(words))
    reason = log.read_text(encoding="utf-8", errors="replace").strip().removeprefix("Error: ")
    raise GpuDevError("did_not_start", words=reason, logs=str(state.logs))
