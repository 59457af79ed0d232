"""The Kubernetes API: objects in and out as JSON, with the errors of our own tree.

lightkube knows how to find and prove oneself to a cluster; what it sends has no preconditions and no
bookmarks, so the requests are made here. A call that fails for a reason of the cluster's is tried again a few
times and then raises `ClusterUnavailable`: an unanswered call says nothing about what is there.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from urllib.request import getproxies

import httpx2
import orjson
from lightkube.config.client_adapter import user_auth, verify_cluster
from lightkube.config.kubeconfig import KubeConfig, SingleConfig
from lightkube.core.exceptions import ConfigError

from gpudev.adapters.kubernetes.api_objects import FIELD_MANAGER, Json, Kind
from gpudev.adapters.kubernetes.direct_transport import DirectTransport
from gpudev.adapters.kubernetes.exec_channel import ExecResult, ExecTarget, run_program
from gpudev.domain.errors import ClusterUnavailable, Defect, Invalid
from gpudev.texts.fact import Fact, fact

_TRIES = 4
_FIRST_PAUSE = 0.1
_TIMEOUT = httpx2.Timeout(10.0)
_LIMITS = httpx2.Limits(max_connections=100, max_keepalive_connections=50)
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
    def __init__(self, http: httpx2.AsyncClient, streams: httpx2.AsyncClient | None = None) -> None:
        """Watches, logs and programs go through `streams`; by default everything goes the same way."""
        self._http = http
        self._streams = streams or http

    async def find(self, kind: Kind, name: str) -> Json | None:
        """A fresh read; None only if the API itself says that there is none."""
        answer = await self._send("GET", f"{kind.path}/{name}")
        return None if _is_not_found(answer, kind, name) else _read(answer)

    async def create(self, kind: Kind, manifest: Json) -> Json:
        """`AlreadyExists` if the name is taken, perhaps by a try of ours whose answer was lost."""
        answer = await self._send("POST", kind.path, {"fieldManager": FIELD_MANAGER}, manifest)
        if answer.status_code == _CONFLICT and _status_of(answer).get("reason") == "AlreadyExists":
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
        is_another = answer.status_code == _CONFLICT and _status_of(answer).get("reason") == "Conflict"
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
        timeout = httpx2.Timeout(10.0, read=_SILENCE_SECONDS)
        async with self._stream(kind.path, parameters, timeout) as answer:
            async for line in _lines_of(answer):
                event = _read_event(line)
                if event["type"] == "ERROR":
                    raise _watch_error(event["object"])
                yield event["type"], event["object"]

    async def read_log(self, kind: Kind, name: str, parameters: Mapping[str, str]) -> AsyncIterator[bytes]:
        """`Refused` as long as the container has not started."""
        timeout = httpx2.Timeout(10.0, read=None)
        async with self._stream(f"{kind.path}/{name}/log", parameters, timeout) as answer:
            async for chunk in answer.aiter_bytes():
                yield chunk

    async def run(
        self, kind: Kind, name: str, container: str, command: Sequence[str], stdin: bytes
    ) -> ExecResult:
        """Run a program in a container of a pod; it is not tried again, since it may have run."""
        return await run_program(self._streams, ExecTarget(f"{kind.path}/{name}", container), command, stdin)

    @asynccontextmanager
    async def _stream(
        self, path: str, parameters: Mapping[str, str], limits: httpx2.Timeout
    ) -> AsyncIterator[httpx2.Response]:
        try:
            async with self._streams.stream("GET", path, params=parameters, timeout=limits) as answer:
                if answer.status_code in {_GONE, _TOO_LARGE}:
                    raise Expired
                if answer.is_error:
                    await answer.aread()
                    if answer.status_code == _BAD_REQUEST:
                        raise Refused(_reason_of(answer))
                    _check(answer)
                yield answer
        except httpx2.ReadTimeout as error:
            # Not even a bookmark: whoever answered may not know of the version that we have heard of.
            raise Expired from error
        except httpx2.TransportError as error:
            raise _unavailable(_failure_of(error)) from error

    async def _send(
        self,
        method: str,
        path: str,
        parameters: Mapping[str, str] | None = None,
        content: Json | None = None,
        content_type: str = "application/json",
    ) -> httpx2.Response:
        """The answer, also one that refuses; only a cluster that does not answer is an error here."""
        why: str | Fact = ""
        for tries in range(_TRIES):
            if tries:
                await asyncio.sleep(_pause_after(tries))
            try:
                answer = await self._http.request(
                    method,
                    path,
                    params=parameters,
                    content=orjson.dumps(content) if content is not None else None,
                    headers={"Content-Type": content_type},
                )
            except httpx2.TransportError as error:
                why = _failure_of(error)
                continue
            if answer.status_code not in _UNAVAILABLE:
                return answer
            why = _reason_of(answer)
        raise _unavailable(why)


@asynccontextmanager
async def connect(kubeconfig: str) -> AsyncIterator[KubernetesClient]:
    config = read_kubeconfig(kubeconfig)
    if config.user is None:
        raise Invalid("kubeconfig_without_user", code="bad_kubeconfig")
    context = verify_cluster(config.cluster, config.user, config.abs_file)
    make = partial(
        httpx2.AsyncClient,
        base_url=config.cluster.server,
        verify=context,
        auth=user_auth(config.user),
        timeout=_TIMEOUT,
        limits=_LIMITS,
    )
    # Where the environment names proxies, httpx2 knows which is for whom.
    direct = None if getproxies() else DirectTransport(context)
    async with make(transport=direct) as http, make() as streams:
        yield KubernetesClient(http, streams)


def read_kubeconfig(path: str) -> SingleConfig:
    """The current context of a file; without one of the service account, `$KUBECONFIG` or the user."""
    try:
        config = (KubeConfig.from_file(path) if path else KubeConfig.from_env()).get()
    except (ConfigError, KeyError, OSError) as error:
        raise Invalid("kubeconfig_unusable", code="bad_kubeconfig", words=str(error)) from error
    if config is None:
        raise Invalid("kubeconfig_without_context", code="bad_kubeconfig")
    return config


def _read(answer: httpx2.Response) -> Json:
    _check(answer)
    value = _json_of(answer)
    if "metadata" not in value:
        raise _unavailable(fact("answer_not_object"))
    return value


def _items_of(listing: Json) -> list[Json]:
    if "items" not in listing:
        raise _unavailable(fact("answer_not_list"))
    return listing["items"] or []


def _is_not_found(answer: httpx2.Response, kind: Kind, name: str) -> bool:
    """Whether the API itself says that there is no object of that name.

    Any other 404 is from something in between, or about something else, and says nothing about the object.
    """
    if answer.status_code != _NOT_FOUND:
        return False
    status = _status_of(answer)
    about = status.get("details") or {}
    return status.get("reason") == "NotFound" and (about.get("kind"), about.get("name")) == (
        kind.plural,
        name,
    )


def _status_of(answer: httpx2.Response) -> Json:
    """The API's own word on what it refuses; empty if somebody else has answered."""
    value = _json_of(answer)
    return value if value.get("kind") == "Status" else {}


def _json_of(answer: httpx2.Response) -> Json:
    try:
        value = orjson.loads(answer.content)
    except orjson.JSONDecodeError:
        return {}
    return value if isinstance(value, dict) else {}


def _check(answer: httpx2.Response) -> None:
    status = answer.status_code
    if answer.is_error and (status in _UNAVAILABLE | {_NOT_FOUND, _CONFLICT} or not _status_of(answer)):
        raise _unavailable(_reason_of(answer))
    if status in _NOT_ALLOWED and _NO_ACCOUNT_YET in _message_of(answer):
        raise ClusterUnavailable("namespace_too_new", why=_reason_of(answer))
    if status in _NOT_ALLOWED:
        raise ClusterUnavailable("cluster_forbidden", why=_reason_of(answer))
    if answer.is_error:
        raise Defect("cluster_refused", status=status, why=_reason_of(answer))


async def _lines_of(answer: httpx2.Response) -> AsyncIterator[bytes]:
    """As bytes, which is what JSON is read from: to make text of the megabytes of a busy watch takes time."""
    rest = b""
    async for chunk in answer.aiter_bytes():
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


def _message_of(answer: httpx2.Response) -> str:
    """In the API's own words; empty if it has none."""
    return str(_status_of(answer).get("message") or "").rstrip(".")


def _reason_of(answer: httpx2.Response) -> str | Fact:
    return _message_of(answer) or fact("answered_with_status", status=answer.status_code)


def _failure_of(error: httpx2.TransportError) -> str | Fact:
    if isinstance(error, httpx2.ConnectTimeout):
        return fact("connect_timeout")
    if isinstance(error, httpx2.ReadTimeout):
        return fact("answer_timeout")
    return str(error) or type(error).__name__


def _unavailable(why: str | Fact) -> ClusterUnavailable:
    return ClusterUnavailable("kubernetes_api_unavailable", why=why)


def _pause_after(tries: int) -> float:
    pause: float = _FIRST_PAUSE * 2.0 ** (tries - 1) * random.uniform(0.5, 1.0)  # noqa: S311 - spreads retries
    return pause
