"""The Kubernetes API: objects in and out as JSON, with the errors of our own tree.

A call that fails for a reason of the cluster's is tried again a few times and then raises
`ClusterUnavailable`: an unanswered call says nothing about what is there.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager

import orjson

from gpudev.adapters.kubernetes.api_objects import FIELD_MANAGER, Json, Kind
from gpudev.adapters.kubernetes.connection import Answer, Connection, Stream, Unanswered, open_connection
from gpudev.adapters.kubernetes.exec_channel import ExecResult, ExecTarget, run_program
from gpudev.adapters.kubernetes.kubeconfig import read_kubeconfig
from gpudev.domain.errors import ClusterUnavailable, Defect
from gpudev.texts.fact import Fact, fact

_TRIES = 4
_FIRST_PAUSE = 0.1
_WATCH_SECONDS = 300
_SILENCE_SECONDS = 100.0
"""A watch says something at least every minute, if only a bookmark; one that does not is begun anew."""

_UNAVAILABLE = frozenset({408, 429, 500, 502, 503, 504})
_NOT_ALLOWED = frozenset({401, 403})
_NO_ACCOUNT_YET = "error looking up service account"
"""How the API refuses pods of a namespace that is so new that its own account is not there yet."""
_BAD_REQUEST = 400
_NOT_FOUND = 404
_CONFLICT = 409
_GONE = 410
_TOO_LARGE = 504


class AlreadyExists(Exception):
    """Something bears that name already."""


class Refused(Exception):
    """The API understood and will not do it, now or ever; why, in its own words where it has any."""

    def __init__(self, why: str | Fact) -> None:
        super().__init__(why)
        self.why = why


class Expired(Exception):
    """A watch cannot go on from where it was: everything has to be listed again."""


class KubernetesClient:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def find(self, kind: Kind, name: str) -> Json | None:
        """A fresh read; None only if the API itself says that there is none."""
        answer = await self._send("GET", f"{kind.path}/{name}")
        return None if _is_not_found(answer, kind, name) else _read(answer)

    async def create(self, kind: Kind, manifest: Json) -> Json:
        """`AlreadyExists` if the name is taken, perhaps by a try of ours whose answer was lost."""
        answer = await self._send("POST", kind.path, {"fieldManager": FIELD_MANAGER}, manifest)
        if answer.status == _CONFLICT and _status_of(answer).get("reason") == "AlreadyExists":
            raise AlreadyExists(manifest["metadata"]["name"])
        return _read(answer)

    async def apply(self, kind: Kind, manifest: Json) -> Json:
        """Server-side apply: for what is configuration of ours, and may be there in an older form."""
        path = f"{kind.path}/{manifest['metadata']['name']}"
        parameters = {"fieldManager": FIELD_MANAGER, "force": "true"}
        answer = await self._send("PATCH", path, parameters, manifest, "application/apply-patch+yaml")
        return _read(answer)

    async def patch(self, kind: Kind, name: str, change: Json) -> Json:
        """Merge this into an object; a uid or version in it is a precondition."""
        path = f"{kind.path}/{name}"
        parameters = {"fieldManager": FIELD_MANAGER}
        return _read(await self._send("PATCH", path, parameters, change, "application/merge-patch+json"))

    async def delete(self, kind: Kind, name: str, uid: str, *, at_once: bool = False) -> Json | None:
        """Delete this very object; what is left of it, or None if it is gone or another has the name."""
        body: Json = {"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": {"uid": uid}}
        if at_once:
            body["gracePeriodSeconds"] = 0
        answer = await self._send("DELETE", f"{kind.path}/{name}", content=body)
        is_another = answer.status == _CONFLICT and _status_of(answer).get("reason") == "Conflict"
        return None if is_another or _is_not_found(answer, kind, name) else _read(answer)

    async def list_all(self, kind: Kind) -> tuple[list[Json], str]:
        """All objects, and the version of the collection from which a watch can go on."""
        answer = _read(await self._send("GET", kind.path))
        return _items_of(answer), answer["metadata"]["resourceVersion"]

    async def find_all(self, kind: Kind, labels: Mapping[str, str]) -> list[Json]:
        """A fresh read of all objects with these labels."""
        selector = ",".join(f"{name}={value}" for name, value in labels.items())
        found: list[Json] = _read(await self._send("GET", kind.path, {"labelSelector": selector}))["items"]
        return found

    async def watch(self, kind: Kind, version: str) -> AsyncIterator[tuple[str, Json]]:
        """What happens from that version on, until the connection ends; `Expired` if it is too old."""
        parameters = {
            "watch": "true",
            "resourceVersion": version,
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(_WATCH_SECONDS),
        }
        async with self._stream(kind.path, parameters, _SILENCE_SECONDS) as stream:
            async for line in _lines_of(stream):
                event = _read_event(line)
                if event["type"] == "ERROR":
                    raise _watch_error(event["object"])
                yield event["type"], event["object"]

    async def read_log(self, kind: Kind, name: str, parameters: Mapping[str, str]) -> AsyncIterator[bytes]:
        """`Refused` as long as the container has not started."""
        async with self._stream(f"{kind.path}/{name}/log", parameters, None) as stream:
            async for chunk in stream.chunks():
                yield chunk

    async def run(
        self, kind: Kind, name: str, container: str, command: Sequence[str], stdin: bytes
    ) -> ExecResult:
        """Run a program in a container of a pod; it is not tried again, since it may have run."""
        return await run_program(
            self._connection, ExecTarget(f"{kind.path}/{name}", container), command, stdin
        )

    @asynccontextmanager
    async def _stream(
        self, path: str, parameters: Mapping[str, str], seconds: float | None
    ) -> AsyncIterator[Stream]:
        try:
            async with self._connection.stream(path, parameters, seconds) as stream:
                if stream.status in {_GONE, _TOO_LARGE}:
                    raise Expired
                if stream.status >= _BAD_REQUEST:
                    answer = await stream.read_all()
                    if answer.status == _BAD_REQUEST:
                        raise Refused(_reason_of(answer))
                    _check(answer)
                yield stream
        except Unanswered as error:
            if error.is_timeout:
                # Not even a bookmark: whoever answered may not know of the version that we have heard of.
                raise Expired from error
            raise _unavailable(error.why) from error

    async def _send(
        self,
        method: str,
        path: str,
        parameters: Mapping[str, str] | None = None,
        content: Json | None = None,
        content_type: str = "application/json",
    ) -> Answer:
        """The answer, also one that refuses; only a cluster that does not answer is an error here."""
        why: str | Fact = ""
        for tries in range(_TRIES):
            if tries:
                await asyncio.sleep(_pause_after(tries))
            try:
                answer = await self._connection.call(method, path, parameters, content, content_type)
            except Unanswered as error:
                why = error.why
                continue
            if answer.status not in _UNAVAILABLE:
                return answer
            why = _reason_of(answer)
        raise _unavailable(why)


@asynccontextmanager
async def connect(kubeconfig: str) -> AsyncIterator[KubernetesClient]:
    async with open_connection(read_kubeconfig(kubeconfig)) as connection:
        yield KubernetesClient(connection)


def _read(answer: Answer) -> Json:
    _check(answer)
    value = answer.json
    if "metadata" not in value:
        raise _unavailable(fact("answer_not_object"))
    return value


def _items_of(listing: Json) -> list[Json]:
    if "items" not in listing:
        raise _unavailable(fact("answer_not_list"))
    return listing["items"] or []


def _is_not_found(answer: Answer, kind: Kind, name: str) -> bool:
    """Whether the API itself says that there is no object of that name.

    Any other 404 is from something in between, or about something else, and says nothing about the object.
    """
    if answer.status != _NOT_FOUND:
        return False
    status = _status_of(answer)
    about = status.get("details") or {}
    return status.get("reason") == "NotFound" and (about.get("kind"), about.get("name")) == (
        kind.plural,
        name,
    )


def _status_of(answer: Answer) -> Json:
    """The API's own word on what it refuses; empty if somebody else has answered."""
    value = answer.json
    return value if value.get("kind") == "Status" else {}


def _check(answer: Answer) -> None:
    status = answer.status
    if answer.is_error and (status in _UNAVAILABLE | {_NOT_FOUND, _CONFLICT} or not _status_of(answer)):
        raise _unavailable(_reason_of(answer))
    if status in _NOT_ALLOWED and _NO_ACCOUNT_YET in _message_of(answer):
        raise ClusterUnavailable("namespace_too_new", why=_reason_of(answer))
    if status in _NOT_ALLOWED:
        raise ClusterUnavailable("cluster_forbidden", why=_reason_of(answer))
    if answer.is_error:
        raise Defect("cluster_refused", status=status, why=_reason_of(answer))


async def _lines_of(stream: Stream) -> AsyncIterator[bytes]:
    """As bytes, which is what JSON is read from: to make text of the megabytes of a busy watch takes time."""
    rest = b""
    async for chunk in stream.chunks():
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            yield line
    if rest:
        yield rest


def _read_event(line: bytes) -> Json:
    try:
        event: Json = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise _unavailable(fact("watch_cut_off")) from error
    return event


def _watch_error(status: Json) -> Exception:
    """A watch that has begun tells of its end in an event."""
    code, message = status.get("code"), str(status.get("message", ""))
    if code in {_GONE, _TOO_LARGE}:
        return Expired(message)
    return _unavailable(message)


def _message_of(answer: Answer) -> str:
    """In the API's own words; empty if it has none."""
    return str(_status_of(answer).get("message") or "").rstrip(".")


def _reason_of(answer: Answer) -> str | Fact:
    return _message_of(answer) or fact("answered_with_status", status=answer.status)


def _unavailable(why: str | Fact) -> ClusterUnavailable:
    return ClusterUnavailable("kubernetes_api_unavailable", why=why)


def _pause_after(tries: int) -> float:
    pause: float = _FIRST_PAUSE * 2.0 ** (tries - 1) * random.uniform(0.5, 1.0)  # noqa: S311 - spreads retries
    return pause
