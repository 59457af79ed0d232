"""Which clients and servers go together."""

from __future__ import annotations

import warnings

import pytest

from gpudev import __version__
from gpudev.client.errors import Outdated
from gpudev.client.http import Http, Request
from gpudev.client.versions import OutdatedClient, Verdict, judge
from gpudev.wire.versions import OLDEST_CLIENT, OLDEST_CLIENT_HEADER, VERSION_HEADER
from tests.support.fake_api import FakeApi, Reply, running_fake_api


@pytest.mark.parametrize(
    "ours, version, oldest, verdict",
    [
        ("0.4.0", "0.4.0", "0.4.0", Verdict.FINE),
        ("0.4.0", "0.4.7", "0.4.0", Verdict.FINE),
        ("0.4.0", "0.5.0", "0.4.0", Verdict.OLD),
        ("0.4.9", "0.10.0", "0.4.0", Verdict.OLD),
        ("0.5.0", "0.4.0", "0.3.0", Verdict.FINE),
        ("0.4.0", "0.6.0", "0.5.0", Verdict.TOO_OLD),
        ("0.4.0", "1.0.0rc1", "0.4.0", Verdict.OLD),
        ("0.4.0", "unknown", "", Verdict.FINE),
    ],
)
def test_who_goes_with_whom(ours: str, version: str, oldest: str, verdict: Verdict) -> None:
    assert judge(ours, version, oldest) is verdict


def test_our_own_server_takes_our_own_client() -> None:
    assert judge(__version__, __version__, OLDEST_CLIENT) is Verdict.FINE


def answer(api: FakeApi, version: str, oldest: str) -> None:
    headers = {VERSION_HEADER: version, OLDEST_CLIENT_HEADER: oldest}
    api.on("GET", "/", Reply(body={}, headers=headers))


def test_a_newer_server_is_warned_about_once() -> None:
    with running_fake_api() as api, Http(api.url) as http:
        answer(api, "99.0.0", __version__)
        with pytest.warns(OutdatedClient, match=r"99\.0\.0.*pip install --upgrade gpu-dev"):
            http.send(Request("GET", "/"))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert http.send(Request("GET", "/")).is_ok


def test_a_server_that_needs_a_newer_client_is_not_used() -> None:
    with running_fake_api() as api, Http(api.url) as http:
        answer(api, "99.0.0", "98.0.0")
        with pytest.raises(Outdated, match=r"needs 98\.0\.0 or newer") as caught:
            http.send(Request("GET", "/"))
    assert caught.value.hint == "Upgrade with: pip install --upgrade gpu-dev"
