"""What the API's answers are taken for: only its own word says that something is not there."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http import HTTPStatus

import pytest

from gpudev.adapters.kubernetes.api_objects import Kind
from gpudev.adapters.kubernetes.client import AlreadyExists, Expired, KubernetesClient, Refused
from gpudev.domain.errors import ClusterUnavailable, Defect
from tests.support.scripted_http import Counting, connected, serving

pytestmark = pytest.mark.anyio

PODS = Kind("api/v1", "pods", "gpu-dev")
NAME = "gpu-dev-7f3a91c2"
PAGE = "<html><body>404 page not found</body></html>"


def answer(code: int, content: str, *headers: str) -> bytes:
    lines = (f"HTTP/1.1 {code} {HTTPStatus(code).phrase}", f"Content-Length: {len(content)}", *headers)
    return ("\r\n".join(lines) + f"\r\n\r\n{content}").encode()


def status(code: int, reason: str, kind: str = "pods", name: str = NAME) -> bytes:
    """As the API writes it."""
    content = {"kind": "Status", "reason": reason, "code": code, "message": f'{kind} "{name}": {reason}'}
    return answer(code, json.dumps(content | {"details": {"kind": kind, "name": name}}))


@asynccontextmanager
async def answering(answer: bytes) -> AsyncIterator[KubernetesClient]:
    async with serving(Counting(answer)) as server, connected(server) as connection:
        yield KubernetesClient(connection)


async def test_what_the_api_does_not_have_is_not_there() -> None:
    async with answering(status(404, "NotFound")) as client:
        assert await client.find(PODS, NAME) is None
        assert await client.delete(PODS, NAME, "uid") is None


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(answer(404, PAGE), id="a page of something in between"),
        pytest.param(answer(404, '{"error": "no such route"}'), id="JSON of something in between"),
        pytest.param(status(404, "NotFound", kind="namespaces"), id="about another kind"),
        pytest.param(status(404, "NotFound", name="another"), id="about another object"),
        pytest.param(status(404, ""), id="without a reason"),
        pytest.param(answer(400, PAGE), id="a bad request, says something in between"),
        pytest.param(answer(403, PAGE), id="a wall in between"),
        pytest.param(answer(409, PAGE), id="a conflict, says something in between"),
        pytest.param(answer(500, PAGE), id="broken"),
        pytest.param(answer(302, "", "Location: http://login.test"), id="sent elsewhere"),
        pytest.param(answer(200, PAGE), id="a page that looks well"),
        pytest.param(answer(200, "[]"), id="JSON that is no object"),
    ],
)
async def test_any_other_answer_says_nothing_about_the_object(answer: bytes) -> None:
    async with answering(answer) as client:
        with pytest.raises(ClusterUnavailable):
            await client.find(PODS, NAME)
        with pytest.raises(ClusterUnavailable):
            await client.delete(PODS, NAME, "uid")
        with pytest.raises(ClusterUnavailable):
            await client.list_all(PODS)
        with pytest.raises(ClusterUnavailable):
            await client.create(PODS, {"metadata": {"name": NAME}})


async def test_an_object_of_the_same_name_with_another_uid_is_not_deleted() -> None:
    async with answering(status(409, "Conflict")) as client:
        assert await client.delete(PODS, NAME, "uid") is None


async def test_a_taken_name_is_told_from_a_conflict() -> None:
    async with answering(status(409, "AlreadyExists")) as client:
        with pytest.raises(AlreadyExists):
            await client.create(PODS, {"metadata": {"name": NAME}})
    async with answering(status(409, "Conflict")) as client:
        with pytest.raises(ClusterUnavailable):
            await client.create(PODS, {"metadata": {"name": NAME}})


async def test_what_the_api_itself_calls_invalid_is_our_mistake() -> None:
    async with answering(status(422, "Invalid")) as client:
        with pytest.raises(Defect):
            await client.create(PODS, {"metadata": {"name": NAME}})


async def test_a_namespace_without_its_account_is_not_a_matter_of_roles() -> None:
    refusal = status(
        403, 'error looking up service account gpu-dev/default: serviceaccount "default" not found'
    )
    async with answering(refusal) as client:
        with pytest.raises(ClusterUnavailable, match="takes no pods yet") as refused:
            await client.create(PODS, {"metadata": {"name": NAME}})
    assert refused.value.hint == ""
    async with answering(status(403, "Forbidden")) as client:
        with pytest.raises(ClusterUnavailable, match="does not let us") as refused:
            await client.create(PODS, {"metadata": {"name": NAME}})
    assert "roles" in refused.value.hint


async def hear(client: KubernetesClient) -> list[tuple[str, object]]:
    return [(change, item["metadata"]["name"]) async for change, item in client.watch(PODS, "7")]


async def test_a_watch_is_read_line_by_line_however_it_is_cut() -> None:
    lines = "".join(
        json.dumps({"type": "ADDED", "object": {"metadata": {"name": name}}}) + "\n" for name in ("a", "bé")
    ).encode()
    pieces = [lines[:5], lines[5:70], lines[70:]]
    chunks = b"".join(f"{len(piece):x}\r\n".encode() + piece + b"\r\n" for piece in pieces)
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    async with answering(head + chunks + b"0\r\n\r\n") as client:
        assert await hear(client) == [("ADDED", "a"), ("ADDED", "bé")]


@pytest.mark.parametrize(
    "said",
    [
        pytest.param(status(410, "Expired"), id="at once"),
        pytest.param(answer(200, '{"type": "ERROR", "object": {"code": 410}}\n'), id="in an event"),
    ],
)
async def test_a_watch_from_a_forgotten_version_is_expired(said: bytes) -> None:
    async with answering(said) as client:
        with pytest.raises(Expired):
            await hear(client)


@pytest.mark.parametrize(
    "said",
    [
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{}", id="in the middle of its answer"),
        pytest.param(answer(200, '{"type": "ADD'), id="in the middle of a line"),
        pytest.param(answer(200, '{"type": "ERROR", "object": {"code": 500}}\n'), id="by an error"),
    ],
)
async def test_a_watch_that_is_cut_off_says_so(said: bytes) -> None:
    async with serving(Counting(said, then_close=True)) as server, connected(server) as connection:
        with pytest.raises(ClusterUnavailable):
            await hear(KubernetesClient(connection))


async def test_a_log_that_is_not_there_yet_is_refused_with_a_reason() -> None:
    async with answering(status(400, "BadRequest")) as client:
        with pytest.raises(Refused, match="BadRequest"):
            _ = [chunk async for chunk in client.read_log(PODS, NAME, {})]
