"""The client: one method for each thing that can be asked of the API, values in and values out."""

from __future__ import annotations

import contextlib
import functools
import itertools
import os
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Self, TypeVar
from urllib.parse import quote, urlencode

from gpudev.client import codec, sse
from gpudev.client.config import Surroundings, Target, find_target, read_surroundings
from gpudev.client.errors import ClientError, Conflict, NotActive, TimedOut, Usage, error_of
from gpudev.client.files import Credentials
from gpudev.client.http import ANSWER_SECONDS, Http, Request, Response
from gpudev.client.interruption import pause
from gpudev.texts.vocabulary import TERMINAL, OperationStatus
from gpudev.wire.jobs import (
    ActionResponse,
    ExtendRequest,
    JobDetail,
    JobEvent,
    JobList,
    JobUsage,
    KeepRequest,
    OperationDetail,
    StartRequest,
    SubmitRequest,
    SubmitResponse,
)

if TYPE_CHECKING:
    from gpudev.client.admin import Admin, DeadLetters, Nodes
    from gpudev.client.disks import Disks
    from gpudev.wire.cluster import AvailabilityResponse, ClusterStatus, LoginResponse, QueueResponse, WhoAmI
    from gpudev.wire.identity import KeyList, RevokedKey, RotatedKey
    from gpudev.wire.notifications import NotificationSettings, NotificationTest
    from gpudev.wire.queue import AccuracyResponse, PreviewResponse

T = TypeVar("T")

OK, UNAUTHENTICATED = 200, 401
_LOG_SILENCE_SECONDS = 24 * 3600.0
_STOPPING_PAUSE = 0.5


class Client:
    """A session with one server. Logs in by itself, when needed, and again when the key has ended."""

    def __init__(
        self, target: Target, surroundings: Surroundings, *, answer_seconds: float = ANSWER_SECONDS
    ) -> None:
        self.target = target
        self.surroundings = surroundings
        self._credentials = Credentials(surroundings.credentials_file)
        self._http = Http(target.api_url, answer_seconds, target.socket_file)
        self._key: str | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @functools.cached_property
    def admin(self) -> Admin:
        """What admins may ask. Loaded when it is: a listing of one's own should not wait for it."""
        from gpudev.client.admin import Admin

        return Admin(self)

    @functools.cached_property
    def disks(self) -> Disks:
        from gpudev.client.disks import Disks

        return Disks(self)

    @functools.cached_property
    def dead_letters(self) -> DeadLetters:
        """For admins: the messages that were given up."""
        from gpudev.client.admin import DeadLetters

        return DeadLetters(self)

    @functools.cached_property
    def nodes(self) -> Nodes:
        """For admins: the nodes, and taking one out of service."""
        from gpudev.client.admin import Nodes

        return Nodes(self)

    def log_in(self) -> LoginResponse:
        """Log in anew, whatever key there is, and keep the new one. Other calls do it when they must."""
        from gpudev.client.login import log_in

        answer = log_in(self._http, self.target, self.surroundings)
        self._keep(answer.api_key, answer.expires_at)
        return answer

    def reserve(self, request: SubmitRequest, *, idempotency_key: str | None = None) -> SubmitResponse:
        """Ask for GPUs. With the same key, asking twice is one request."""
        headers = {"Idempotency-Key": idempotency_key or os.urandom(16).hex()}
        return self._post(SubmitResponse, "/v1/jobs/submit", request, headers)

    def get(self, reservation: str) -> JobDetail:
        """By id, unique prefix of it, or name."""
        return self._get(JobDetail, _job_path(reservation))

    def list(
        self,
        *,
        statuses: Collection[str] = (),
        gpu_type: str | None = None,
        user: str | None = None,
        limit: int | None = None,
        offset: int = 0,
    ) -> JobList:
        """A page of one's own reservations, newest first; for admins also of a `user`, or of `all`."""
        wanted = {
            "status": ",".join(statuses),
            "gpu_type": gpu_type,
            "user": user,
            "limit": limit,
            "offset": offset,
        }
        query = urlencode({name: value for name, value in wanted.items() if value}, safe=",")
        return self._get(JobList, f"/v1/jobs?{query}" if query else "/v1/jobs")

    def cancel(self, reservation: str) -> ActionResponse:
        return self._post(ActionResponse, f"{_job_path(reservation)}/cancel")

    def extend(self, reservation: str, hours: float, *, idempotency_key: str | None = None) -> ActionResponse:
        """Ask for more time. With the same key, asking twice is one extension."""
        headers = {"Idempotency-Key": idempotency_key or os.urandom(16).hex()}
        body = ExtendRequest(extension_hours=hours)
        return self._post(ActionResponse, f"{_job_path(reservation)}/extend", body, headers)

    def keep(self, reservation: str, hours: float, reason: str = "") -> ActionResponse:
        """Hold off the end of a reservation that nobody uses."""
        body = KeepRequest(hours=hours, reason=reason)
        return self._post(ActionResponse, f"{_job_path(reservation)}/keep", body)

    def stop(self, reservation: str) -> ActionResponse:
        """End its server and keep the time left. `/workspace`, and a home without a disk, are lost."""
        return self._post(ActionResponse, f"{_job_path(reservation)}/stop")

    def start(
        self, reservation: str, wanted: StartRequest | None = None, *, timeout: float = 60
    ) -> JobDetail:
        """Put a stopped reservation back into the queue; while its server still ends, wait for that."""
        deadline = time.monotonic() + timeout
        while True:
            try:
                return self._post(JobDetail, f"{_job_path(reservation)}/start", wanted or StartRequest())
            except Conflict as conflict:
                if conflict.code != "still_stopping" or time.monotonic() > deadline:
                    raise
            pause(_STOPPING_PAUSE)

    def usage(self, reservation: str, points: int = 40) -> JobUsage:
        """How much a dev server was used, in so many stretches of its life."""
        return self._get(JobUsage, f"{_job_path(reservation)}/usage?points={points}")

    def wait_for_operation(self, operation_id: str, *, timeout: float = 60) -> OperationDetail:
        """Wait until a requested action is carried out. `ClientError` with its words if it failed."""
        deadline = time.monotonic() + timeout
        length = 0.05
        while (operation := self.get_operation(operation_id)).status == OperationStatus.REQUESTED:
            if time.monotonic() > deadline:
                raise TimedOut(f"The {operation.action} was not carried out in {timeout:g} seconds.")
            pause(length)
            length = min(1.0, length * 2)
        if operation.status == OperationStatus.FAILED:
            raise ClientError(operation.error or f"The {operation.action} failed.", code="operation_failed")
        return operation

    def get_operation(self, operation_id: str) -> OperationDetail:
        return self._get(OperationDetail, f"/v1/operations/{quote(operation_id, safe='')}")

    def availability(self) -> AvailabilityResponse:
        from gpudev.wire.cluster import AvailabilityResponse

        return self._get(AvailabilityResponse, "/v1/gpu/availability")

    def status(self) -> ClusterStatus:
        from gpudev.wire.cluster import ClusterStatus

        return self._get(ClusterStatus, "/v1/cluster/status")

    def preview(self, request: SubmitRequest) -> PreviewResponse:
        """What would become of a request. It reserves nothing."""
        from gpudev.wire.queue import PreviewResponse

        return self._post(PreviewResponse, "/v1/jobs/preview", request)

    def accuracy(self) -> AccuracyResponse:
        """How good the forecasts of the queue were."""
        from gpudev.wire.queue import AccuracyResponse

        return self._get(AccuracyResponse, "/v1/queue/accuracy")

    def queue(self) -> QueueResponse:
        from gpudev.wire.cluster import QueueResponse

        return self._get(QueueResponse, "/v1/queue")

    def whoami(self) -> WhoAmI:
        from gpudev.wire.cluster import WhoAmI

        return self._get(WhoAmI, "/v1/me")

    def notifications(self) -> NotificationSettings:
        from gpudev.wire.notifications import NotificationSettings

        return self._get(NotificationSettings, "/v1/me/notifications")

    def set_notifications(
        self, url: str | None, kind: str = "webhook", topics: Collection[str] = ()
    ) -> NotificationSettings:
        """Choose where one's own notifications go, and of what they are; no address is nowhere."""
        from gpudev.wire.notifications import NotificationChoice, NotificationSettings

        body = codec.dumps(NotificationChoice(url=url, kind=kind, topics=sorted(topics))).encode()
        return self._call(NotificationSettings, Request("PUT", "/v1/me/notifications", body, may_repeat=True))

    def test_notifications(self) -> NotificationTest:
        from gpudev.wire.notifications import NotificationTest

        return self._post(NotificationTest, "/v1/me/notifications/test")

    def list_keys(self) -> KeyList:
        """One's own API keys, newest first."""
        from gpudev.wire.identity import KeyList

        return self.call(KeyList, "GET", "/v1/keys")

    def rotate_key(self) -> RotatedKey:
        """Replace the key that is in use, here and in the file that keeps it.

        A key has one successor, so this is not repeated by itself; `Conflict` if somebody has rotated the key
        already. Where the answer was lost, log in again.
        """
        from gpudev.wire.identity import RotatedKey

        answer = self.send(RotatedKey, "POST", "/v1/keys/rotate")
        self._keep(answer.api_key, answer.expires_at)
        return answer

    def revoke_key(self, prefix: str) -> RevokedKey:
        """End one of one's own keys, named by its first characters."""
        from gpudev.wire.identity import RevokedKey

        return self.call(RevokedKey, "DELETE", f"/v1/keys/{quote(prefix, safe='')}")

    def events(
        self,
        reservation: str,
        *,
        after: int = 0,
        timeout: float | None = None,
        patience: float = sse.PATIENCE_SECONDS,
        on_loss: sse.Loss = sse.ignore_loss,
    ) -> Iterator[JobEvent | None]:
        """Every event of a reservation, then live ones; None is a heartbeat. See `sse.follow`."""
        path = f"{_job_path(reservation)}/events"

        @contextlib.contextmanager
        def connect(last: int, silence_seconds: float) -> Iterator[Iterator[str]]:
            headers = {"Last-Event-ID": str(last)} if last else {}
            with self._stream(path, headers, silence_seconds) as lines:
                yield lines

        deadline = sse.Deadline(timeout)
        return sse.follow(connect, deadline, after, patience_seconds=patience, on_loss=on_loss)

    def list_events(self, reservation: str) -> tuple[JobEvent, ...]:
        """What has happened to a reservation until now."""
        path = f"{_job_path(reservation)}/events?follow=false"
        with self._stream(path, {}, ANSWER_SECONDS) as lines:
            # A heartbeat means that the server goes on although it was told not to: the history is over.
            told = itertools.takewhile(lambda data: data is not None, sse.parse(lines))
            return tuple(codec.loads(JobEvent, data) for data in told if data is not None)

    def logs(self, reservation: str, *, tail: int | None = None, follow: bool = False) -> Iterator[str]:
        """What the dev server has written about itself, line by line."""
        asked = {"tail": tail, "follow": "true" if follow else None}
        query = urlencode({name: value for name, value in asked.items() if value is not None})
        silence = _LOG_SILENCE_SECONDS if follow else ANSWER_SECONDS
        with self._stream(f"{_job_path(reservation)}/logs?{query}", {}, silence) as lines:
            yield from lines

    def wait_until(
        self,
        reservation: str,
        statuses: Collection[str],
        *,
        timeout: float | None = None,
        tell: Callable[[JobEvent], None] | None = None,
    ) -> JobDetail:
        """Wait for one of these statuses; `tell` hears what happens meanwhile.

        `NotActive` if the reservation ends without having reached one.
        """
        for event in self.events(reservation, timeout=timeout):
            if event is not None and tell is not None:
                tell(event)
            if event is not None and event.status in statuses:
                break
            if event is not None and event.status in TERMINAL:
                raise NotActive(f"Reservation {reservation} is {event.status}: {event.message}")
        return self.get(reservation)

    def wait_until_clean(self, reservation: str, *, timeout: float | None = None) -> JobDetail:
        """Wait until nothing is left of a reservation that has ended or is about to."""
        for _ in self.events(reservation, timeout=timeout):
            pass
        return self.get(reservation)

    def close(self) -> None:
        self._http.close()

    def call(self, kind: type[T], method: str, path: str) -> T:
        """A request without a body that is the same when it is made twice."""
        return self._call(kind, Request(method, path, may_repeat=True))

    def send(self, kind: type[T], method: str, path: str, body: object = None) -> T:
        """A request that is made once: twice would be something else."""
        content = None if body is None else codec.dumps(body).encode()
        return self._call(kind, Request(method, path, content))

    def _get(self, kind: type[T], path: str) -> T:
        return self.call(kind, "GET", path)

    def _post(
        self, kind: type[T], path: str, body: object = None, headers: Mapping[str, str] | None = None
    ) -> T:
        """All our POSTs may be repeated: a cancel is the same twice, the others carry a key."""
        content = None if body is None else codec.dumps(body).encode()
        return self._call(kind, Request("POST", path, content, headers or {}, may_repeat=True))

    def _call(self, kind: type[T], request: Request) -> T:
        response = self._http.send(self._signed(request))
        if response.status == UNAUTHENTICATED:
            self.log_in()
            response = self._http.send(self._signed(request))
        _check(response)
        return codec.loads(kind, response.body)

    @contextlib.contextmanager
    def _stream(
        self, path: str, headers: Mapping[str, str], silence_seconds: float
    ) -> Iterator[Iterator[str]]:
        request = Request("GET", path, headers={**headers, "Accept": "text/event-stream"})
        with contextlib.ExitStack() as opened:
            stream = opened.enter_context(self._http.stream(self._signed(request), silence_seconds))
            if stream.status == UNAUTHENTICATED:
                self.log_in()
                stream = opened.enter_context(self._http.stream(self._signed(request), silence_seconds))
            if stream.status != OK:
                _check(stream.read())
            yield stream.lines()

    def authorisation(self) -> str:
        """The header that says who we are, with the key that there is, or with a new one."""
        if self._key is None:
            self._key = self._credentials.find_key(self.target.api_url, datetime.now(UTC))
        if self._key is None:
            self.log_in()
        return f"Bearer {self._key}"

    def _signed(self, request: Request) -> Request:
        headers = {**request.headers, "Authorization": self.authorisation()}
        return Request(request.method, request.path, request.body, headers, request.may_repeat)

    def _keep(self, api_key: str, expires_at: datetime) -> None:
        self._credentials.keep_key(self.target.api_url, api_key, expires_at)
        self._key = api_key


def connect(surroundings: Surroundings | None = None, *, answer_seconds: float = ANSWER_SECONDS) -> Client:
    """A client of the server that the user's configuration names."""
    here = surroundings or read_surroundings()
    return Client(find_target(here), here, answer_seconds=answer_seconds)


def _job_path(reservation: str) -> str:
    if not reservation:
        raise Usage("No reservation is named.", hint="Yours are listed by: gpu-dev list")
    return f"/v1/jobs/{quote(reservation, safe='')}"


def _check(response: Response) -> None:
    if not response.is_ok:
        raise error_of(response.status, response.body, response.retry_after)
