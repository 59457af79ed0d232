"""Two people, a reservation of one of them, and the port to which it leads."""

from __future__ import annotations

import asyncio
import hashlib
import socket
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta

import pytest

from gpudev.domain.names import NodeName
from gpudev.domain.server import Member, SshAddress
from gpudev.ports.users import NewKey
from tests.support.active import make_active
from tests.support.reservations import open_test_stores
from tests.support.ssh_proxy import ProxyProcess, listening_server, running_proxy

Reserve = Callable[..., str]


@pytest.fixture(scope="module")
def proxy(module_database: str) -> Iterator[ProxyProcess]:
    for name in ("ada", "eve"):
        asyncio.run(add_user(module_database, name))
    with running_proxy(module_database) as running:
        yield running


@pytest.fixture
def server() -> Iterator[socket.socket]:
    with listening_server() as listener:
        yield listener


@pytest.fixture
def reserve(module_database: str, server: socket.socket, proxy: ProxyProcess) -> Reserve:
    """An active reservation of somebody's that leads to the server; its id."""

    def make(username: str = "ada", port: int | None = None) -> str:
        return asyncio.run(reserve_for(module_database, username, port or server.getsockname()[1]))

    return make


def key_of(username: str) -> str:
    return f"key-of-{username}"


async def add_user(dsn: str, username: str, key: str = "") -> None:
    """Somebody with a key; with another one, if they are there already."""
    async with open_test_stores(dsn) as stores:
        user = await stores.users.upsert(username)
        key = key or key_of(username)
        ends_at = datetime.now(UTC) + timedelta(hours=1)
        hashed = hashlib.sha256(key.encode()).digest()
        await stores.users.add_key(user.user_id, NewKey(hashed, key[:8], ends_at))


async def reserve_for(dsn: str, username: str, port: int) -> str:
    async with open_test_stores(dsn) as stores:
        user = await stores.users.find_by_name(username)
        assert user is not None
        member = Member(NodeName("t4-0"), SshAddress("127.0.0.1", port), ("ssh-ed25519 AAAA",))
        return (await make_active(stores, user, members=(member,))).id
