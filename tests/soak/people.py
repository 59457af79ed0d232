"""Users of a gpu-dev on this machine, each with a key of their own, by plain HTTP."""

from __future__ import annotations

import http.client
import json
import threading
import time
from dataclasses import dataclass, field
from typing import Any, Protocol

from tests.support.reservations import PUBLIC_KEY

TIMEOUT_SECONDS = 60
START_SECONDS = 120.0
PAUSE_SECONDS = 2.5
"""Of an honest user between two reservations; more often than every 2 seconds nobody may submit for long."""
_OVER = ("cancelled", "failed", "expired")


class Stop(Protocol):
    """An event of this process or of another one."""

    def is_set(self) -> bool: ...


class Unlucky(Exception):
    """A reservation of an honest user did not start."""


@dataclass(frozen=True)
class Person:
    port: int
    key: str
    public_key: str = PUBLIC_KEY

    def send(self, method: str, path: str, content: bytes | None = None) -> http.client.HTTPResponse:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=TIMEOUT_SECONDS)
        headers = {"Authorization": f"Bearer {self.key}", "Content-Type": "application/json"}
        try:
            connection.request(method, path, content, headers)
            response = connection.getresponse()
            response.text = response.read()  # type: ignore[attr-defined]  # read before the connection is closed
            return response
        finally:
            connection.close()

    def call(self, method: str, path: str, body: Any = None) -> Any:
        content = None if body is None else json.dumps(body).encode()
        return json.loads(self.send(method, path, content).text)  # type: ignore[attr-defined]  # see `send`

    def request(self, gpu_type: str, hours: float = 1) -> dict[str, Any]:
        return {
            "gpu_type": gpu_type,
            "gpu_count": 1,
            "duration_hours": hours,
            "disk_name": "none",
            "ssh_public_keys": [self.public_key],
        }

    def submit(self, gpu_type: str) -> str:
        answer = self.call("POST", "/v1/jobs/submit", self.request(gpu_type))
        if "job_id" not in answer:
            raise ValueError(answer)
        return str(answer["job_id"])

    def wait_until_active(self, job: str, stop: Stop | None = None) -> bool:
        return self._follow(job, ("active",), stop)

    def cancel(self, job: str) -> None:
        if job:
            self.call("POST", f"/v1/jobs/{job}/cancel")

    def wait_until_over(self, job: str) -> bool:
        return self._follow(job, _OVER, None)

    def list_jobs(self) -> list[str]:
        answer = self.call("GET", "/v1/jobs?status=active,preparing,queued,pending&limit=100")
        return [str(job["job_id"]) for job in answer.get("jobs", ())]

    def _follow(self, job: str, wanted: tuple[str, ...], stop: Stop | None) -> bool:
        """Read the events until the status is as wanted. False: it ended otherwise, or took too long."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=TIMEOUT_SECONDS)
        deadline = time.monotonic() + START_SECONDS
        try:
            connection.request(
                "GET", f"/v1/jobs/{job}/events", headers={"Authorization": f"Bearer {self.key}"}
            )
            for line in connection.getresponse():
                status = _status_in(line)
                if status in wanted or status in _OVER:
                    return status in wanted
                if time.monotonic() > deadline or (stop is not None and stop.is_set()):
                    return False
        finally:
            connection.close()
        return False


def _status_in(line: bytes) -> str:
    return str(json.loads(line.removeprefix(b"data: "))["status"]) if line.startswith(b"data: ") else ""


@dataclass
class Honest:
    """Reserves, waits until the server answers, gives it back, pauses, and all of it again."""

    person: Person
    gpu_type: str
    stop: threading.Event
    delay: float = 0.0
    """Before the first reservation: those who all begin at once are the slowest of a run without attacks."""
    starts: list[tuple[float, float]] = field(default_factory=list)
    """When each was submitted, and when it was active."""
    errors: list[str] = field(default_factory=list)

    def run(self) -> None:
        self.stop.wait(self.delay)
        while not self.stop.is_set():
            try:
                self._reserve_once()
            except (OSError, http.client.HTTPException, ValueError, Unlucky) as error:
                self.errors.append(f"{type(error).__name__}: {error}"[:300])
            self.stop.wait(PAUSE_SECONDS)

    def _reserve_once(self) -> None:
        begun = time.monotonic()
        job = self.person.submit(self.gpu_type)
        if not self.person.wait_until_active(job):
            raise Unlucky(self.person.call("GET", f"/v1/jobs/{job}"))
        self.starts.append((begun, time.monotonic()))
        self.person.cancel(job)
        self.person.wait_until_over(job)
