"""Schemathesis asks for everything in the OpenAPI document, with all of its checks, for ten minutes.

Four callers ask at the same time. `GPU_DEV_SOAK_SECONDS` is the length, and `GPU_DEV_SOAK_SEED` chooses the
requests.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from gpudev.ports.users import NewKey
from tests.support.api_server import ApiServer, running_api
from tests.support.reservations import PUBLIC_KEY, open_test_stores

pytestmark = pytest.mark.soak

SECONDS = int(os.environ.get("GPU_DEV_SOAK_SECONDS", "600"))
SEED = os.environ.get("GPU_DEV_SOAK_SEED", "14")
CONFIG = Path(__file__).with_name("schemathesis.toml")
GRACE_SECONDS = 300
"""For the requests that Schemathesis has begun when its time is over."""
SETTINGS = {
    "GPU_DEV_ADMINS": "local:admin",
    # No caller is stopped by a limit, and a key that was rotated is used again.
    "GPU_DEV_REQUESTS_PER_SECOND": "0",
    "GPU_DEV_SUBMITS_PER_MINUTE": "0",
    "GPU_DEV_WRONG_KEYS_PER_MINUTE": "0",
    "GPU_DEV_KEY_OVERLAP_SECONDS": "3600",
}
SHARE_OF_KNOWN = 0.5
NAMES = ("user", "stranger", "admin", "other")


@dataclass(frozen=True, slots=True)
class Caller:
    name: str
    server: ApiServer
    key: str | None
    known: dict[str, list[str]]
    """What exists, by the name of the parameter: a part of the requests is about it."""
    peer: str | None = None
    """The key of a user who must not see what this caller owns."""

    def write_config(self, folder: Path) -> Path:
        folder.mkdir()
        config = folder / "schemathesis.toml"
        config.write_text(self._describe_known() + CONFIG.read_text() + self._describe_auth(folder))
        return config

    def _describe_known(self) -> str:
        """First in the file: these are keys of its top level."""
        lines = [
            f'dictionaries."{name}".values = {json.dumps(values)}\n'
            f'parameters."{name}" = {{ dictionary = "{name}", probability = {SHARE_OF_KNOWN} }}\n'
            for name, values in self.known.items()
        ]
        return "".join(lines)

    def _describe_auth(self, folder: Path) -> str:
        if self.key is None:
            return ""
        keys = {self.name: self.key} | ({"peer": self.peer} if self.peer else {})
        users = folder / "users.json"
        entries = [
            {"name": name, "fixedHeaders": [{"name": "Authorization", "value": f"Bearer {key}"}]}
            for name, key in keys.items()
        ]
        users.write_text(json.dumps({"auth": entries}))
        lines = ["", "[auth.wfc]", f'path = "{users}"', f'user = "{self.name}"']
        return "\n".join([*lines, *([f"peers = {json.dumps(list(keys))}"] if self.peer else []), ""])

    def start(self, folder: Path) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "schemathesis.cli", "--config-file", str(self.write_config(folder))]
        command += ["--no-color", "run", f"http://{self.server.authority}/openapi.json"]
        command += ["--checks", "all", "--max-time", str(SECONDS), "--seed", SEED]
        return subprocess.Popen(
            command, cwd=folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )


@pytest.fixture
def callers(module_database: str, database: str, tmp_path: Path) -> Iterator[tuple[Caller, ...]]:
    """An admin has a server of their own: they must not disable the other callers in the middle."""
    for dsn in (module_database, database):
        asyncio.run(add_people(dsn))
    with (
        running_api(module_database, tmp_path / "state", SETTINGS) as server,
        running_api(database, tmp_path / "state-of-admin", SETTINGS) as server_of_admin,
    ):
        yield (
            Caller("nobody", server, None, known := own_things(server, "user")),
            Caller("wrong-key", server, make_key("nobody"), known),
            Caller("user", server, make_key("user"), known, make_key("stranger")),
            Caller("admin", server_of_admin, make_key("admin"), own_things(server_of_admin, "admin")),
        )


def own_things(server: ApiServer, username: str) -> dict[str, list[str]]:
    """What this user has, and what a good request consists of."""

    def post(path: str, body: dict[str, object] | None = None) -> dict[str, str]:
        answer = server.call("POST", path, body, make_key(username))
        assert answer.status == 200, answer.text
        found: dict[str, str] = answer.json
        return found

    asked = {"gpu_type": "t4", "gpu_count": 1, "duration_hours": 1, "ssh_public_keys": [PUBLIC_KEY]}
    job = post("/v1/jobs/submit", {**asked, "disk_name": "none", "name": "soak"})["job_id"]
    cancelled = post("/v1/jobs/submit", {**asked, "disk_name": "none"})["job_id"]
    disk = post("/v1/disks", {"disk_name": "soak"})
    return {
        "path.job_id": [job, "soak", cancelled],
        "path.operation_id": [post(f"/v1/jobs/{cancelled}/cancel")["operation_id"], disk["operation_id"]],
        "path.name": ["soak", "other", "t4-0"],
        "body.gpu_type": ["t4"],
        "body.ssh_public_keys[*]": [PUBLIC_KEY],
    }


def make_key(username: str) -> str:
    return hashlib.sha256(username.encode()).hexdigest()


async def add_people(dsn: str) -> None:
    """The keys have a prefix that no request can name, so that no caller revokes their own."""
    async with open_test_stores(dsn) as stores:
        for name in NAMES:
            user = await stores.users.upsert(name)
            hashed = hashlib.sha256(make_key(name).encode()).digest()
            await stores.users.add_key(
                user.user_id, NewKey(hashed, "key", datetime.now(UTC) + timedelta(hours=24))
            )


def test_every_check_holds_for_every_caller(callers: tuple[Caller, ...], tmp_path: Path) -> None:
    running = [(caller, caller.start(tmp_path / f"of-{caller.name}")) for caller in callers]
    failed = []
    for caller, process in running:
        output, _ = process.communicate(timeout=SECONDS + GRACE_SECONDS)
        sys.stdout.write(f"\n===== {caller.name}: {process.returncode}\n{output}\n")
        failed += [caller.name] if process.returncode else []
    for caller in callers:
        expected = {"nobody": 401, "wrong-key": 401}.get(caller.name, 200)
        answer = caller.server.call("GET", "/v1/me", key=caller.key)
        assert answer.status == expected, f"{caller.name} did not keep their key"
    assert failed == []
