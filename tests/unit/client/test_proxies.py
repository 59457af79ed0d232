"""Requests through an HTTP proxy: which server is reached by which, with real proxies and real TLS."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from ipaddress import IPv4Address
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from gpudev.client.config import ProxyVariables, read_proxy_variables
from gpudev.client.errors import Unreachable
from gpudev.client.http import Http, Request
from gpudev.client.proxies import Proxy, ProxyFailed, find_proxy, is_direct
from tests.support.fake_api import FakeApi, Reply, running_fake_api
from tests.support.http_proxy import HttpProxy, running_http_proxy
from tests.support.kubernetes.certificates import write_certificates
from tests.support.tls import Certificates, tls_before

PLAIN, SECURE = "gpu-dev.test", "127.0.0.2"
"""The second has a certificate; for the client neither is this machine."""
KEY = {"Authorization": "Bearer secret-key"}
PROXY_NAMES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")


@pytest.fixture(autouse=True)
def _no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in PROXY_NAMES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.fixture
def api() -> Iterator[FakeApi]:
    with running_fake_api() as api:
        api.on("GET", "/v1/me", Reply(body={"hello": "there"}))
        yield api


@pytest.fixture
def proxy(api: FakeApi) -> Iterator[HttpProxy]:
    with running_http_proxy() as proxy:
        port = urlsplit(api.url).port
        assert port is not None
        proxy.routes[PLAIN] = port
        yield proxy


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    folder: Path = tmp_path_factory.mktemp("certificates")
    write_certificates(folder, (IPv4Address(SECURE),))
    return Certificates(folder)


@pytest.fixture
def secure(
    api: FakeApi, proxy: HttpProxy, certificates: Certificates, monkeypatch: pytest.MonkeyPatch
) -> Iterator[str]:
    """The same API behind TLS, reached by the proxy alone."""
    monkeypatch.setenv("SSL_CERT_FILE", str(certificates.authority))
    with tls_before(proxy.routes[PLAIN], certificates) as port:
        proxy.routes[SECURE] = port
        yield f"https://{SECURE}"


def test_a_plain_address_is_asked_for_by_its_whole_name(
    api: FakeApi, proxy: HttpProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", proxy.url)
    with Http(f"http://{PLAIN}/base") as http:
        api.on("GET", "/base/v1/me", Reply(body={}))
        assert http.send(Request("GET", "/v1/me", headers=KEY)).status == 200
    assert proxy.asked == [f"GET http://{PLAIN}:80/base/v1/me HTTP/1.1"]
    [seen] = api.requests
    assert seen.headers["host"] == PLAIN
    assert seen.headers["authorization"] == KEY["Authorization"]


def test_an_encrypted_one_is_reached_by_a_tunnel_that_sees_nothing(
    api: FakeApi, proxy: HttpProxy, secure: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    proxy.login = "ada:s%3Acret"
    monkeypatch.setenv("https_proxy", proxy.url)
    proxy.login = "ada:s:cret"
    with Http(secure) as http:
        assert [http.send(Request("GET", "/v1/me", headers=KEY)).status for _ in range(2)] == [200, 200]
    assert proxy.asked == [f"CONNECT {SECURE}:443 HTTP/1.1"]
    assert len(api.requests) == 2
    assert "proxy-authorization" not in api.requests[0].headers


def test_streams_and_bare_connections_go_the_same_way(
    api: FakeApi, proxy: HttpProxy, secure: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ALL_PROXY", proxy.url)
    api.on("GET", "/v1/jobs/x/events", Reply(stream="id: 1\n\n"))
    with Http(secure) as http, http.stream(Request("GET", "/v1/jobs/x/events"), 30) as stream:
        assert list(stream.lines()) == ["id: 1", ""]
    with Http(f"http://{PLAIN}") as http, http.dial() as bare:
        bare.sendall(b"GET /v1/me HTTP/1.0\r\n\r\n")
        assert bare.recv(12) == b"HTTP/1.1 200"
    assert proxy.asked == [f"CONNECT {SECURE}:443 HTTP/1.1", f"CONNECT {PLAIN}:80 HTTP/1.1"]


def test_a_certificate_that_the_system_does_not_know_is_refused_behind_a_proxy_too(
    proxy: HttpProxy, secure: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", proxy.url)
    monkeypatch.delenv("SSL_CERT_FILE")
    with Http(secure) as http, pytest.raises(Unreachable, match="certificate is not valid"):
        http.send(Request("GET", "/v1/me"))


@pytest.mark.parametrize(
    "change, words",
    [
        ({"login": "ada:secret"}, "wants a name and a password"),
        ({"routes": {}}, "HTTP status 502"),
    ],
    ids=["login", "no route"],
)
def test_what_the_proxy_refuses_is_told(
    proxy: HttpProxy, change: dict[str, object], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", proxy.address)
    for name, value in change.items():
        setattr(proxy, name, value)
    with Http(f"https://{SECURE}") as http, pytest.raises(Unreachable, match=words) as refused:
        http.send(Request("GET", "/v1/me"))
    assert f"127.0.0.1:{proxy.port}" in refused.value.message
    assert "secret" not in refused.value.message


def test_a_proxy_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    monkeypatch.setenv("HTTP_PROXY", f"127.0.0.1:{port}")
    with Http(f"http://{PLAIN}") as http, pytest.raises(Unreachable, match=f"proxy 127.0.0.1:{port}"):
        http.send(Request("GET", "/v1/me"))


def test_this_machine_and_no_proxy_are_reached_directly(
    api: FakeApi, proxy: HttpProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", proxy.url)
    port = urlsplit(api.url).port
    with Http(api.url) as http:
        assert http.send(Request("GET", "/v1/me")).status == 200
    monkeypatch.setenv("NO_PROXY", "127.0.0.0/8")
    with Http(f"http://127.0.0.2:{port}") as http, pytest.raises(Unreachable, match="refused"):
        http.send(Request("GET", "/v1/me"))
    assert proxy.asked == []


@pytest.mark.parametrize(
    "no_proxy, is_named",
    [
        ("", False),
        ("*", True),
        ("example.org", True),
        (".example.org", True),
        ("*.example.org", True),
        ("GPU-DEV.example.org", True),
        ("ple.org", False),
        ("other.org, gpu-dev.example.org", True),
        ("gpu-dev.example.org:443", True),
        ("gpu-dev.example.org:8443", False),
        ("10.0.0.0/8", False),
    ],
)
def test_no_proxy_names_hosts(no_proxy: str, *, is_named: bool) -> None:
    assert is_direct("gpu-dev.example.org", 443, no_proxy) is is_named


def test_no_proxy_names_networks() -> None:
    assert is_direct("10.1.2.3", 443, "10.0.0.0/8")
    assert is_direct("10.1.2.3", 443, "10.1.2.3")
    assert not is_direct("11.1.2.3", 443, "10.0.0.0/8,nonsense/8")


def test_each_kind_of_address_has_its_proxy() -> None:
    variables = ProxyVariables(https="http://a:1", http="b", all="http://c:3")
    assert find_proxy("https", "x.org", 443, variables) == Proxy("a", 1)
    assert find_proxy("http", "x.org", 80, variables) == Proxy("b", 80)
    assert find_proxy("http", "x.org", 80, ProxyVariables(all="http://c:3")) == Proxy("c", 3)
    assert find_proxy("http", "x.org", 80, ProxyVariables()) is None
    for kind in ("socks5://a:1", "https://name:secret@a:1"):
        with pytest.raises(ProxyFailed, match="not supported") as refused:
            find_proxy("http", "x.org", 80, ProxyVariables(all=kind))
        assert "secret" not in str(refused.value)


def test_small_letters_come_first() -> None:
    read = read_proxy_variables({"https_proxy": "a", "HTTPS_PROXY": "b", "HTTP_PROXY": "c", "NO_PROXY": "d"})
    assert read == ProxyVariables(https="a", http="c", no_proxy="d")
