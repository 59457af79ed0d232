"""Commands in a running dev server: notices for its users, its use, its command and its files.

Each is a script of ours that is in the server since its start, and runs as the user. Its data is passed on
its standard input, never in a command line.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable
from datetime import datetime

import structlog

from gpudev.adapters.kubernetes.api_objects import OwnKinds
from gpudev.adapters.kubernetes.client import KubernetesClient
from gpudev.adapters.kubernetes.exec_channel import ExecResult
from gpudev.adapters.kubernetes.facts import PodFacts
from gpudev.adapters.kubernetes.manifests.pod import CONTAINER
from gpudev.adapters.kubernetes.manifests.resources import STARTUP
from gpudev.adapters.kubernetes.script_reports import (
    CpuTime,
    Gpus,
    Look,
    read_job_report,
    read_listing,
    read_look,
    tell_usage,
)
from gpudev.domain.errors import Unavailable
from gpudev.domain.idle import Usage
from gpudev.domain.job import Job
from gpudev.domain.names import make_printable
from gpudev.domain.notices import Notice
from gpudev.domain.server import LOGIN
from gpudev.domain.volume import FileListing

_log = structlog.get_logger(__name__)

_JOB = "job.sh"
_LISTING = "listing.sh"
_NOTICES = "notices.sh"
_USAGE = "usage.sh"
_REMEMBERED = 10_000
"""More than there are servers; those that were asked longest ago are gone."""


class PodExec:
    def __init__(
        self, client: KubernetesClient, kinds: OwnKinds, note_ooms: Callable[[PodFacts, int, datetime], None]
    ) -> None:
        self._client = client
        self._kinds = kinds
        self._note_ooms = note_ooms
        self._cpu_times: dict[str, CpuTime] = {}

    async def tell(self, pod: PodFacts, notices: Iterable[Notice]) -> None:
        lines = "".join(f"{notice.file_name}\n{notice.text}\n" for notice in notices)
        ran = await self._run(pod, _NOTICES, f"{lines}\n")
        if ran.code != 0:
            # A home that is full, for example. Those who are there have seen it, and are not shown it again.
            error = make_printable(ran.err, 1000)
            _log.warning("notices_not_kept", pod=pod.name, code=ran.code, error=error)

    async def list_home(self, pod: PodFacts) -> FileListing | None:
        ran = await self._run(pod, _LISTING, "")
        if ran.code != 0:
            _log.warning("home_not_listed", pod=pod.name, code=ran.code, error=make_printable(ran.err, 1000))
            return None
        return read_listing(ran.out)

    async def find_job(self, pod: PodFacts, id8: str) -> Job | None:
        ran = await self._run(pod, _JOB, f"{id8}\n")
        # A server that was started by an earlier version has no such script.
        return read_job_report(ran.out) if ran.code == 0 else None

    async def measure(self, pod: PodFacts, gpus: Gpus, now: datetime) -> Usage:
        """A server that says nothing is not idle: then nothing is known of it."""
        try:
            ran = await self._run(pod, _USAGE, "")
        except Unavailable as error:
            _log.warning("use_not_measured", pod=pod.name, error=error.message)
            return tell_usage(Look(), None, gpus, now)
        look = read_look(ran.out)
        self._note_ooms(pod, look.oom_kills, now)
        before = self._cpu_times.pop(pod.uid, None)
        if look.cpu is not None:
            self._cpu_times[pod.uid] = look.cpu
        if len(self._cpu_times) > _REMEMBERED:
            del self._cpu_times[next(iter(self._cpu_times))]
        return tell_usage(look, before, gpus, now)

    async def _run(self, pod: PodFacts, script: str, stdin: str) -> ExecResult:
        command = ("su", "-s", "/bin/sh", LOGIN, "-c", shlex.join(("exec", "sh", f"{STARTUP}/{script}")))
        return await self._client.run(self._kinds.pods, pod.name, CONTAINER, command, stdin.encode())
