"""What the API's answers are taken for: only its own word says that something is not there."""

from __future__ import annotations

import httpx2
import pytest

from gpudev.adapters.kubernetes.api_objects import Kind
from gpudev.adapters.kubernetes.client import AlreadyExists, KubernetesClient
from gpudev.domain.errors import ClusterUnavailable, Defect

pytestmark = pytest.mark.anyio

PODS = Kind("api/v1", "pods", "gpu-dev")
NAME = "gpu-dev-7f3a91c2"
PAGE = "<html><body>404 page not found</body></html>"


def status(code: int, reason: str, kind: str = "pods", name: str = NAME) -> httpx2.Response:
    """As the API writes it."""
    content = {"kind": "Status", "reason": reason, "code": code, "message": f'{kind} "{name}": {reason}'}
    return httpx2.Response(code, json=content | {"details": {"kind": kind, "name": name}})


def make_client(answer: httpx2.Response) -> KubernetesClient:
    transport = httpx2.MockTransport(lambda _: answer)
    return KubernetesClient(httpx2.AsyncClient(transport=transport, base_url="http://cluster.test"))


async def test_what_the_api_does_not_have_is_not_there() -> None:
    client = make_client(status(404, "NotFound"))
    assert await client.find(PODS, NAME) is None
    assert await client.delete(PODS, NAME, "uid") is None


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(httpx2.Response(404, text=PAGE), id="a page of something in between"),
        pytest.param(
            httpx2.Response(404, json={"error": "no such route"}), id="JSON of something in between"
        ),
        pytest.param(status(404, "NotFound", kind="namespaces"), id="about another kind"),
        pytest.param(status(404, "NotFound", name="another"), id="about another object"),
        pytest.param(status(404, ""), id="without a reason"),
        pytest.param(httpx2.Response(400, text=PAGE), id="a bad request, says something in between"),
        pytest.param(httpx2.Response(403, text=PAGE), id="a wall in between"),
        pytest.param(httpx2.Response(409, text=PAGE), id="a conflict, says something in between"),
        pytest.param(httpx2.Response(500, text=PAGE), id="broken"),
        pytest.param(httpx2.Response(302, headers={"Location": "http://login.test"}), id="sent elsewhere"),
        pytest.param(httpx2.Response(200, text=PAGE), id="a page that looks well"),
        pytest.param(httpx2.Response(200, json=[]), id="JSON that is no object"),
    ],
)
async def test_any_other_answer_says_nothing_about_the_object(answer: httpx2.Response) -> None:
    client = make_client(answer)
    with pytest.raises(ClusterUnavailable):
        await client.find(PODS, NAME)
    with pytest.raises(ClusterUnavailable):
        await client.delete(PODS, NAME, "uid")
    with pytest.raises(ClusterUnavailable):
        await client.list_all(PODS)
    with pytest.raises(ClusterUnavailable):
        await client.create(PODS, {"metadata": {"name": NAME}})


async def test_an_object_of_the_same_name_with_another_uid_is_not_deleted() -> None:
    assert await make_client(status(409, "Conflict")).delete(PODS, NAME, "uid") is None


async def test_a_taken_name_is_told_from_a_conflict() -> None:
    with pytest.raises(AlreadyExists):
        await make_client(status(409, "AlreadyExists")).create(PODS, {"metadata": {"name": NAME}})
    with pytest.raises(ClusterUnavailable):
        await make_client(status(409, "Conflict")).create(PODS, {"metadata": {"name": NAME}})


async def test_what_the_api_itself_calls_invalid_is_our_mistake() -> None:
    with pytest.raises(Defect):
        await make_client(status(422, "Invalid")).create(PODS, {"metadata": {"name": NAME}})


async def test_a_namespace_without_its_account_is_not_a_matter_of_roles() -> None:
    refusal = status(
        403, 'error looking up service account gpu-dev/default: serviceaccount "default" not found'
    )
    with pytest.raises(ClusterUnavailable, match="takes no pods yet") as refused:
        await make_client(refusal).create(PODS, {"metadata": {"name": NAME}})
    assert refused.value.hint == ""
    with pytest.raises(ClusterUnavailable, match="does not let us") as refused:
        await make_client(status(403, "Forbidden")).create(PODS, {"metadata": {"name": NAME}})
    assert "roles" in refused.value.hint
