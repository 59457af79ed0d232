"""Where the API of a cluster is, and who we are there: from a kubeconfig or the pod's service account.

Supported are certificates, tokens, files of tokens, programs that print a token (`exec`) and passwords. A
token from a file or a program is read again when the API refuses it.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import ssl
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import yaml

from gpudev.domain.errors import ClusterUnavailable, Invalid

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_DEFAULT = "~/.kube/config"
_CODE = "bad_kubeconfig"
_EXEC_SECONDS = 30.0

Fields = Mapping[str, Any]


class Credentials(Protocol):
    """Who we are, for each call."""

    async def authorize(self) -> str:
        """The value of the header `Authorization`; empty if there is none to send."""
        ...

    def renew(self, refused: str) -> bool:
        """Forget this value, which the API refused. False if there can be no other."""
        ...


@dataclass(frozen=True, slots=True)
class Kubeconfig:
    """The current context of a kubeconfig."""

    cluster: Fields
    user: Fields
    folder: Path
    """What its relative paths begin from."""

    @property
    def server(self) -> str:
        return str(self.cluster["server"]).rstrip("/")

    def make_credentials(self) -> Credentials:
        user = self.user
        if path := user.get("tokenFile"):
            return TokenFile(self.folder / path)
        if token := user.get("token"):
            return Fixed(f"Bearer {token}")
        if program := user.get("exec"):
            return TokenProgram(program)
        if user.get("username") and user.get("password"):
            both = f"{user['username']}:{user['password']}"
            return Fixed(f"Basic {base64.b64encode(both.encode()).decode()}")
        if "auth-provider" in user:
            raise _unusable("auth-provider")
        return Fixed("")

    def make_tls_context(self) -> ssl.SSLContext:
        """`Invalid` if its certificates cannot be read."""
        try:
            context = self._trust_cluster()
            self._load_certificate(context)
        except (OSError, ValueError) as error:
            raise _unusable(str(error)) from error
        return context

    def _trust_cluster(self) -> ssl.SSLContext:
        if path := self.cluster.get("certificate-authority"):
            return ssl.create_default_context(cafile=self.folder / path)
        if data := self.cluster.get("certificate-authority-data"):
            return ssl.create_default_context(cadata=base64.b64decode(data).decode())
        context = ssl.create_default_context()
        if self.cluster.get("insecure-skip-tls-verify"):
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        return context

    def _load_certificate(self, context: ssl.SSLContext) -> None:
        certificate, key = self._read_user("client-certificate"), self._read_user("client-key")
        if not certificate:
            return
        # OpenSSL reads them from files only. This one is ours alone, and gone at once.
        with tempfile.NamedTemporaryFile() as file:
            file.write(certificate + b"\n" + key)
            file.flush()
            context.load_cert_chain(file.name)

    def _read_user(self, name: str) -> bytes:
        if data := self.user.get(f"{name}-data"):
            return base64.b64decode(data)
        path = self.user.get(name)
        return (self.folder / path).read_bytes() if path else b""


def read_kubeconfig(path: str) -> Kubeconfig:
    """The current context of a file; without one of the service account, `$KUBECONFIG` or the user."""
    if path:
        return _read_file(Path(path).expanduser())
    if (SERVICE_ACCOUNT / "token").is_file():
        return _read_service_account(SERVICE_ACCOUNT)
    return _read_file(Path(os.environ.get("KUBECONFIG") or _DEFAULT).expanduser())


def _read_service_account(folder: Path) -> Kubeconfig:
    try:
        host, port = os.environ["KUBERNETES_SERVICE_HOST"], os.environ["KUBERNETES_SERVICE_PORT"]
    except KeyError as error:
        raise _unusable(str(error.args[0])) from error
    server = f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"
    return Kubeconfig({"server": server, "certificate-authority": "ca.crt"}, {"tokenFile": "token"}, folder)


def _read_file(path: Path) -> Kubeconfig:
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise _unusable(str(error)) from error
    if not isinstance(content, dict):
        raise _unusable(str(path))
    current = content.get("current-context")
    if not current:
        raise Invalid("kubeconfig_without_context", code=_CODE)
    context = _find(content, "context", str(current))
    if not context.get("user"):
        raise Invalid("kubeconfig_without_user", code=_CODE)
    cluster = _find(content, "cluster", str(context.get("cluster", "")))
    if not cluster.get("server"):
        raise _unusable(f"{context['cluster']}: server")
    return Kubeconfig(cluster, _find(content, "user", str(context["user"])), path.absolute().parent)


def _find(content: Fields, kind: str, name: str) -> Fields:
    """What a kubeconfig has of this kind under this name."""
    entries = content.get(f"{kind}s")
    named = [one for one in entries if isinstance(one, dict)] if isinstance(entries, Sequence) else []
    found = next((one.get(kind) for one in named if one.get("name") == name), None)
    if not isinstance(found, dict):
        raise _unusable(f"{kind} {name}")
    return found


class Fixed:
    """The same for ever."""

    def __init__(self, value: str) -> None:
        self._value = value

    async def authorize(self) -> str:
        return self._value

    def renew(self, refused: str) -> bool:  # noqa: ARG002 - the protocol's
        return False


class TokenFile:
    """A token that somebody else replaces in time, as the kubelet does with those of service accounts."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._value = ""

    async def authorize(self) -> str:
        if not self._value:
            self._value = f"Bearer {self._read()}"
        return self._value

    def renew(self, refused: str) -> bool:
        if self._value == refused:
            self._value = ""
        return True

    def _read(self) -> str:
        try:
            return self._path.read_text(encoding="utf-8").strip()
        except OSError as error:
            raise _no_token(str(error)) from error


class TokenProgram:
    """A program that prints a token, as clouds have them; it is run again when the token is refused."""

    def __init__(self, program: Fields) -> None:
        self._command = [str(program.get("command", "")), *map(str, program.get("args") or ())]
        self._variables = {str(one["name"]): str(one["value"]) for one in program.get("env") or ()}
        self._version = program.get("apiVersion")
        self._value = ""
        self._lock = asyncio.Lock()

    async def authorize(self) -> str:
        async with self._lock:
            if not self._value:
                self._value = f"Bearer {_read_token(await self._run())}"
            return self._value

    def renew(self, refused: str) -> bool:
        if self._value == refused:
            self._value = ""
        return True

    async def _run(self) -> bytes:
        asked = {"apiVersion": self._version, "kind": "ExecCredential", "spec": {"interactive": False}}
        variables = {**os.environ, "KUBERNETES_EXEC_INFO": json.dumps(asked), **self._variables}
        pipe = asyncio.subprocess.PIPE
        try:
            program = await asyncio.create_subprocess_exec(
                *self._command, env=variables, stdin=asyncio.subprocess.DEVNULL, stdout=pipe, stderr=pipe
            )
        except OSError as error:
            raise _no_token(str(error)) from error
        try:
            async with asyncio.timeout(_EXEC_SECONDS):
                out, words = await program.communicate()
        except TimeoutError as error:
            raise _no_token(self._command[0]) from error
        finally:
            if program.returncode is None:
                program.kill()
                await program.wait()
        if program.returncode != 0:
            raise _no_token(words.decode(errors="replace").strip() or self._command[0])
        return out


def _read_token(printed: bytes) -> str:
    try:
        return str(json.loads(printed)["status"]["token"])
    except (ValueError, KeyError, TypeError) as error:
        raise _no_token(str(error)) from error


def _no_token(words: str) -> ClusterUnavailable:
    return ClusterUnavailable("kubernetes_api_unavailable", why=words)


def _unusable(words: str) -> Invalid:
    return Invalid("kubeconfig_unusable", code=_CODE, words=words)
