"""Where the API is and who we are there, as kubeconfigs and service accounts say it."""

from __future__ import annotations

import base64
import json
import ssl
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any

import pytest
import yaml

from gpudev.adapters.kubernetes import kubeconfig
from gpudev.adapters.kubernetes.kubeconfig import Kubeconfig, read_kubeconfig
from gpudev.domain.errors import ClusterUnavailable, Invalid
from tests.support.kubernetes.certificates import write_certificates

pytestmark = pytest.mark.anyio

CLUSTER = {"server": "https://cluster.test:6443/"}
NOWHERE = {"name": "c", "cluster": {"insecure-skip-tls-verify": False}}
STRANGER = {"name": "here", "context": {"cluster": "c"}}
AUTHORITY = ((("commonName", "gpu-dev test cluster"),),)
PRINT_TOKEN = """
import json, os
asked = json.loads(os.environ["KUBERNETES_EXEC_INFO"])
print(json.dumps({"status": {"token": f"{asked['apiVersion']} {os.environ['WHO']} {len(os.listdir('.'))}"}}))
open(os.environ["WHO"] + str(len(os.listdir("."))), "w").close()
"""


def write_kubeconfig(folder: Path, **changes: Any) -> str:
    content = {
        "current-context": "here",
        "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "other", "cluster": {}}, {"name": "c", "cluster": CLUSTER}],
        "users": [{"name": "u", "user": {"token": "secret"}}],
    }
    path = folder / "config"
    path.write_text(yaml.safe_dump(content | changes))
    return str(path)


async def test_the_current_context_is_read(tmp_path: Path) -> None:
    config = read_kubeconfig(write_kubeconfig(tmp_path))
    assert config.server == "https://cluster.test:6443"
    assert await config.make_credentials().authorize() == "Bearer secret"


@pytest.mark.parametrize(
    "changes,message",
    [
        pytest.param({"current-context": None}, "kubeconfig_without_context", id="no context"),
        pytest.param({"current-context": "gone"}, "kubeconfig_unusable", id="an unknown context"),
        pytest.param({"contexts": []}, "kubeconfig_unusable", id="no contexts"),
        pytest.param(
            {"contexts": [{"name": "here", "context": {"cluster": "c"}}]},
            "kubeconfig_without_user",
            id="no user",
        ),
        pytest.param({"users": None}, "kubeconfig_unusable", id="an unknown user"),
        pytest.param({"clusters": "none"}, "kubeconfig_unusable", id="an unknown cluster"),
        pytest.param({"clusters": [NOWHERE]}, "kubeconfig_unusable", id="no server"),
    ],
)
def test_what_is_missing_is_said(changes: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(Invalid) as refused:
        read_kubeconfig(write_kubeconfig(tmp_path, **changes))
    assert (refused.value.fact.key, refused.value.code) == (message, "bad_kubeconfig")


@pytest.mark.parametrize("text", ["", "[1]", "a: [", "\x00"])
def test_what_is_no_kubeconfig_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "config").write_text(text)
    with pytest.raises(Invalid):
        read_kubeconfig(str(tmp_path / "config"))
    with pytest.raises(Invalid, match="absent"):
        read_kubeconfig(str(tmp_path / "absent"))


async def test_a_pod_is_its_service_account(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_certificates(tmp_path, (IPv4Address("127.0.0.1"),))
    (tmp_path / "token").write_text("first\n")
    monkeypatch.setattr(kubeconfig, "SERVICE_ACCOUNT", tmp_path)
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "fd00::1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    config = read_kubeconfig("")
    assert config.server == "https://[fd00::1]:443"
    assert config.make_tls_context().verify_mode is ssl.CERT_REQUIRED
    credentials = config.make_credentials()
    assert await credentials.authorize() == "Bearer first"
    (tmp_path / "token").write_text("second\n")
    assert await credentials.authorize() == "Bearer first"
    assert credentials.renew("Bearer first")
    assert await credentials.authorize() == "Bearer second"
    assert credentials.renew("Bearer first")
    (tmp_path / "token").unlink()
    assert await credentials.authorize() == "Bearer second"
    credentials.renew("Bearer second")
    with pytest.raises(ClusterUnavailable):
        await credentials.authorize()


async def test_without_one_the_environment_names_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kubeconfig, "SERVICE_ACCOUNT", tmp_path / "absent")
    monkeypatch.setenv("KUBECONFIG", write_kubeconfig(tmp_path))
    assert read_kubeconfig("").server == "https://cluster.test:6443"
    monkeypatch.delenv("KUBECONFIG")
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(Invalid, match="kube/config"):
        read_kubeconfig("")


async def test_a_program_prints_a_token_and_is_run_again_when_it_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    program = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": "python3",
        "args": ["-c", PRINT_TOKEN],
        "env": [{"name": "WHO", "value": "me"}],
    }
    credentials = Kubeconfig(CLUSTER, {"exec": program}, tmp_path).make_credentials()
    first = await credentials.authorize()
    assert first == "Bearer client.authentication.k8s.io/v1 me 0"
    assert await credentials.authorize() == first
    assert credentials.renew(first)
    assert await credentials.authorize() == first.replace(" 0", " 1")


@pytest.mark.parametrize(
    "command,words",
    [
        pytest.param(["/no/such/program"], "/no/such/program", id="that is not there"),
        pytest.param(["sh", "-c", "echo log in first >&2; exit 1"], "log in first", id="that fails"),
        pytest.param(["echo", "{}"], "status", id="that prints something else"),
    ],
)
async def test_a_program_without_a_token_is_told_of(command: list[str], words: str, tmp_path: Path) -> None:
    program = {"command": command[0], "args": command[1:]}
    credentials = Kubeconfig(CLUSTER, {"exec": program}, tmp_path).make_credentials()
    with pytest.raises(ClusterUnavailable, match=words):
        await credentials.authorize()


@pytest.mark.parametrize(
    "user,value",
    [
        pytest.param({"token": "t", "exec": {}}, "Bearer t", id="a token comes first"),
        pytest.param({"username": "a", "password": "b"}, "Basic YTpi", id="a password"),
        pytest.param({}, "", id="a certificate alone"),
    ],
)
async def test_who_we_are_is_sent_with_each_call(user: dict[str, Any], value: str, tmp_path: Path) -> None:
    credentials = Kubeconfig(CLUSTER, user, tmp_path).make_credentials()
    assert await credentials.authorize() == value
    assert not credentials.renew(value)


def test_what_is_not_supported_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Invalid, match="auth-provider"):
        Kubeconfig(CLUSTER, {"auth-provider": {}}, tmp_path).make_credentials()


def test_certificates_are_read_from_files_and_from_the_kubeconfig_itself(tmp_path: Path) -> None:
    write_certificates(tmp_path, (IPv4Address("127.0.0.1"),))

    def inside(name: str) -> str:
        return base64.b64encode((tmp_path / name).read_bytes()).decode()

    by_path = Kubeconfig(
        {**CLUSTER, "certificate-authority": "ca.crt"},
        {"client-certificate": "api-server.crt", "client-key": "api-server.key"},
        tmp_path,
    )
    by_data = Kubeconfig(
        {**CLUSTER, "certificate-authority-data": inside("ca.crt")},
        {"client-certificate-data": inside("api-server.crt"), "client-key-data": inside("api-server.key")},
        Path("/nowhere"),
    )
    for config in (by_path, by_data):
        context = config.make_tls_context()
        assert (context.verify_mode, context.check_hostname) == (ssl.CERT_REQUIRED, True)
        assert [one["subject"] for one in context.get_ca_certs()] == [
            ((("commonName", "gpu-dev test cluster"),),)
        ]
    broken = Kubeconfig(CLUSTER, {**by_data.user, "client-key-data": inside("ca.crt")}, tmp_path)
    with pytest.raises(Invalid):
        broken.make_tls_context()


def test_only_who_says_so_trusts_everybody(tmp_path: Path) -> None:
    trusting = Kubeconfig({**CLUSTER, "insecure-skip-tls-verify": True}, {}, tmp_path)
    assert trusting.make_tls_context().verify_mode is ssl.CERT_NONE
    assert Kubeconfig(CLUSTER, {}, tmp_path).make_tls_context().verify_mode is ssl.CERT_REQUIRED


def test_a_kubeconfig_is_json_as_well(tmp_path: Path) -> None:
    path = tmp_path / "config"
    write_kubeconfig(tmp_path)
    path.write_text(json.dumps(yaml.safe_load(path.read_text())))
    assert read_kubeconfig(str(path)).user == {"token": "secret"}
