"""The SSH proxy by itself: whom it leads where, how bytes pass, and how tunnels end."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import threading
import time
import urllib.request
import uuid
from contextlib import suppress
from pathlib import Path

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection

from gpudev.domain.audit import AuditEntry, AuditRecord
from gpudev.ports.audit import AuditQuery
from gpudev.wire.tunnel import END_OF_STREAM, ENDED, GOING_AWAY, IDLE, NO_SERVER
from tests.integration.proxy.conftest import Reserve, add_user, key_of, reserve_for
from tests.support.reservations import open_test_stores
from tests.support.ssh_proxy import DEADLINE_SECONDS, ProxyProcess, accept, running_proxy

MEBIBYTE = 1 << 20


def refusal(proxy: ProxyProcess, reservation: str, key: str, node: str = "0") -> tuple[int, str]:
    with pytest.raises(InvalidStatus) as refused:
        proxy.open(reservation, key, node)
    body = json.loads(refused.value.response.body or b"")
    assert body["detail"]
    return refused.value.response.status_code, body["code"]


def test_the_owner_is_led_to_the_server_and_bytes_pass_both_ways(
    proxy: ProxyProcess, reserve: Reserve, server: socket.socket
) -> None:
    with proxy.open(reserve(), key_of("ada")) as tunnel, accept(server) as ssh:
        ssh.sendall(b"SSH-2.0-test\r\n")
        assert tunnel.recv(DEADLINE_SECONDS) == b"SSH-2.0-test\r\n"
        tunnel.send(b"hello")
        assert ssh.recv(100) == b"hello"


def test_a_prefix_or_a_name_will_do(proxy: ProxyProcess, reserve: Reserve, server: socket.socket) -> None:
    with proxy.open(reserve()[:8], key_of("ada")), accept(server):
        pass


@pytest.mark.parametrize(
    "username, status, code",
    [
        pytest.param("eve", 404, "not_found", id="somebody-else"),
        pytest.param("nobody", 401, "unauthenticated", id="unknown-key"),
        pytest.param("", 401, "unauthenticated", id="no-key"),
    ],
)
def test_others_are_not_told_that_there_is_a_server(
    proxy: ProxyProcess, reserve: Reserve, username: str, status: int, code: str
) -> None:
    key = key_of(username) if username else ""
    assert refusal(proxy, reserve(), key) == (status, code)


def test_what_is_not_there_is_refused(proxy: ProxyProcess, reserve: Reserve) -> None:
    key = key_of("ada")
    assert refusal(proxy, str(uuid.uuid4()), key) == (404, "not_found")
    assert refusal(proxy, "%00", key) == (404, "not_found")
    assert refusal(proxy, reserve(), key, node="1") == (404, "not_found")
    assert refusal(proxy, reserve(), key, node="x") == (404, "not_found")
    assert refusal(proxy, reserve(), key, node="1" * 5000) == (404, "not_found")


def test_a_server_that_does_not_answer_ends_the_tunnel_with_words(
    proxy: ProxyProcess, reserve: Reserve
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    with proxy.open(reserve(port=port), key_of("ada")) as tunnel, pytest.raises(ConnectionClosed) as ended:
        tunnel.recv(DEADLINE_SECONDS)
    assert ended.value.rcvd is not None
    assert (ended.value.rcvd.code, "does not answer" in ended.value.rcvd.reason) == (NO_SERVER, True)


def test_the_end_of_one_direction_leaves_the_other_open(
    proxy: ProxyProcess, reserve: Reserve, server: socket.socket
) -> None:
    with proxy.open(reserve(), key_of("ada")) as tunnel, accept(server) as ssh:
        tunnel.send(b"all that I have")
        tunnel.send(END_OF_STREAM)
        assert ssh.makefile("rb").read() == b"all that I have"
        ssh.sendall(b"an answer")
        assert tunnel.recv(DEADLINE_SECONDS) == b"an answer"
        ssh.shutdown(socket.SHUT_WR)
        assert tunnel.recv(DEADLINE_SECONDS) == END_OF_STREAM
        with pytest.raises(ConnectionClosed) as ended:
            tunnel.recv(DEADLINE_SECONDS)
        assert ended.value.rcvd is not None
        assert ended.value.rcvd.code == 1000


def test_a_server_that_ends_first_is_still_sent_to(
    proxy: ProxyProcess, reserve: Reserve, server: socket.socket
) -> None:
    with proxy.open(reserve(), key_of("ada")) as tunnel, accept(server) as ssh:
        ssh.shutdown(socket.SHUT_WR)
        assert tunnel.recv(DEADLINE_SECONDS) == END_OF_STREAM
        tunnel.send(b"more")
        assert ssh.recv(100) == b"more"


def test_nothing_is_lost_and_not_much_is_kept_while_the_server_does_not_read(
    proxy: ProxyProcess, reserve: Reserve, server: socket.socket
) -> None:
    """The client is held up long before the proxy has all of what it sends."""
    content = os.urandom(256 * 1024)
    rounds = 512
    before = most_memory(proxy)
    with proxy.open(reserve(), key_of("ada")) as tunnel, accept(server) as ssh:
        sent = threading.Event()

        def send() -> None:
            for _ in range(rounds):
                tunnel.send(content)
            sent.set()

        sender = threading.Thread(target=send)
        sender.start()
        arriving = ssh.makefile("rb")
        received = arriving.read(1)
        assert not sent.is_set()
        received += arriving.read(len(content) - 1)
        for _ in range(rounds - 1):
            assert received == content
            received = arriving.read(len(content))
        sender.join(DEADLINE_SECONDS)
        assert sent.is_set()
    assert most_memory(proxy) - before < 32 * MEBIBYTE


def most_memory(proxy: ProxyProcess) -> int:
    """The most bytes that the proxy has had in memory so far."""
    status = Path(f"/proc/{proxy.process.pid}/status").read_text()
    (line,) = (line for line in status.splitlines() if line.startswith("VmHWM:"))
    return int(line.split()[1]) * 1024


def test_it_says_that_it_is_well(proxy: ProxyProcess) -> None:
    with urllib.request.urlopen(f"http://127.0.0.1:{proxy.port}/health", timeout=DEADLINE_SECONDS) as answer:
        assert json.load(answer) == {"status": "ok"}


class TestLimits:
    """Each with a proxy of its own that is set for it."""

    def test_a_user_may_have_so_many_tunnels_and_no_more(self, database: str, server: socket.socket) -> None:
        asyncio.run(add_user(database, "ada"))
        reservation = asyncio.run(reserve_for(database, "ada", server.getsockname()[1]))
        with (
            running_proxy(database, GPU_DEV_SSH_PROXY_TUNNELS_PER_USER="2") as proxy,
            proxy.open(reservation, key_of("ada")),
            accept(server),
        ):
            with proxy.open(reservation, key_of("ada")), accept(server):
                assert refusal(proxy, reservation, key_of("ada")) == (409, "quota_exceeded")
            self.wait_for_room(proxy, reservation)

    def wait_for_room(self, proxy: ProxyProcess, reservation: str) -> None:
        """The proxy sees the end of a tunnel a moment after it."""
        deadline = time.monotonic() + DEADLINE_SECONDS
        while time.monotonic() < deadline:
            with suppress(InvalidStatus), proxy.open(reservation, key_of("ada")):
                return
        pytest.fail("there was never room again")

    def test_an_idle_tunnel_is_closed_with_words(self, database: str, server: socket.socket) -> None:
        asyncio.run(add_user(database, "ada"))
        reservation = asyncio.run(reserve_for(database, "ada", server.getsockname()[1]))
        with (
            running_proxy(database, GPU_DEV_SSH_PROXY_IDLE_MINUTES="0.002") as proxy,
            proxy.open(reservation, key_of("ada")) as tunnel,
            accept(server),
        ):
            assert self.find_end(tunnel) == (IDLE, "Nothing has passed for 0.002 minutes.")

    @pytest.mark.parametrize("what", ["user-disabled", "reservation-over"])
    def test_a_tunnel_does_not_outlive_the_right_to_it(
        self, database: str, server: socket.socket, what: str
    ) -> None:
        asyncio.run(add_user(database, "ada"))
        reservation = asyncio.run(reserve_for(database, "ada", server.getsockname()[1]))
        with (
            running_proxy(database, GPU_DEV_SSH_PROXY_CHECK_SECONDS="0.05") as proxy,
            proxy.open(reservation, key_of("ada")) as tunnel,
            accept(server) as ssh,
        ):
            ssh.sendall(b"still here")
            assert tunnel.recv(DEADLINE_SECONDS) == b"still here"
            asyncio.run(end_right(database, reservation, what))
            assert self.find_end(tunnel)[0] == ENDED

    @pytest.mark.parametrize("what", ["key-revoked", "user-disabled"])
    def test_a_revocation_ends_a_tunnel_without_waiting_for_the_next_check(
        self, database: str, server: socket.socket, what: str
    ) -> None:
        asyncio.run(add_user(database, "ada"))
        reservation = asyncio.run(reserve_for(database, "ada", server.getsockname()[1]))
        with (
            running_proxy(database, GPU_DEV_SSH_PROXY_CHECK_SECONDS="3600") as proxy,
            proxy.open(reservation, key_of("ada")) as tunnel,
            accept(server) as ssh,
        ):
            ssh.sendall(b"still here")
            assert tunnel.recv(DEADLINE_SECONDS) == b"still here"
            asyncio.run(end_right(database, reservation, what))
            assert self.find_end(tunnel)[0] == ENDED

    def test_a_tunnel_lasts_longer_than_its_key_and_not_longer_than_the_login(
        self, database: str, server: socket.socket
    ) -> None:
        asyncio.run(add_user(database, "ada"))
        reservation = asyncio.run(reserve_for(database, "ada", server.getsockname()[1]))
        with (
            running_proxy(database, GPU_DEV_SSH_PROXY_CHECK_SECONDS="0.05") as proxy,
            proxy.open(reservation, key_of("ada")) as old,
            accept(server) as old_ssh,
        ):
            asyncio.run(end_right(database, reservation, "key-expired"))
            asyncio.run(add_user(database, "ada", "key-of-ada-2"))
            with proxy.open(reservation, "key-of-ada-2") as other, accept(server):
                asyncio.run(end_right(database, reservation, "login-ended"))
                assert self.find_end(other)[0] == ENDED, "so the check has run since the old key expired"
            old_ssh.sendall(b"still here")
            assert old.recv(DEADLINE_SECONDS) == b"still here"

    def test_who_connects_to_what_is_in_the_audit_log(self, database: str, server: socket.socket) -> None:
        asyncio.run(add_user(database, "ada"))
        reservation = asyncio.run(reserve_for(database, "ada", server.getsockname()[1]))
        with (
            running_proxy(database) as proxy,
            proxy.open(reservation, key_of("ada")) as tunnel,
            accept(server) as ssh,
        ):
            tunnel.send(b"hello")
            assert ssh.recv(100) == b"hello"
        # The proxy has stopped, and has written all that it knew.
        opened, closed = reversed(asyncio.run(read_audit(database)))
        assert (opened.entry.username, opened.entry.action, opened.entry.target) == (
            "ada",
            "open_tunnel",
            reservation,
        )
        assert (closed.entry.action, closed.entry.target) == ("close_tunnel", reservation)
        assert "5 bytes to the server" in closed.entry.detail

    def test_a_proxy_that_stops_lets_people_finish(self, database: str, server: socket.socket) -> None:
        asyncio.run(add_user(database, "ada"))
        reservation = asyncio.run(reserve_for(database, "ada", server.getsockname()[1]))
        with running_proxy(database, GPU_DEV_SSH_PROXY_DRAIN_SECONDS="60") as proxy:
            with proxy.open(reservation, key_of("ada")) as tunnel, accept(server) as ssh:
                proxy.process.terminate()
                self.wait_until_closed(proxy.port)
                ssh.sendall(b"finish")
                assert tunnel.recv(DEADLINE_SECONDS) == b"finish"
            assert proxy.process.wait(DEADLINE_SECONDS) == 0

    def test_a_proxy_that_must_stop_says_so(self, database: str, server: socket.socket) -> None:
        asyncio.run(add_user(database, "ada"))
        reservation = asyncio.run(reserve_for(database, "ada", server.getsockname()[1]))
        with (
            running_proxy(database) as proxy,
            proxy.open(reservation, key_of("ada")) as tunnel,
            accept(server),
        ):
            proxy.process.terminate()
            assert self.find_end(tunnel)[0] == GOING_AWAY

    def wait_until_closed(self, port: int) -> None:
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), timeout=DEADLINE_SECONDS).close()
            except ConnectionResetError:  # it was in the listener's line when that closed
                continue
            except ConnectionRefusedError:
                return

    def find_end(self, tunnel: ClientConnection) -> tuple[int, str]:
        with pytest.raises(ConnectionClosed) as ended:
            tunnel.recv(DEADLINE_SECONDS)
        assert ended.value.rcvd is not None
        return ended.value.rcvd.code, ended.value.rcvd.reason


async def read_audit(dsn: str) -> tuple[AuditRecord, ...]:
    async with open_test_stores(dsn) as stores:
        return await stores.audit.list_page(AuditQuery())


async def end_right(dsn: str, reservation: str, what: str) -> None:
    async with open_test_stores(dsn) as stores:
        if what == "key-revoked":
            user = await stores.users.find_by_name("ada")
            assert user is not None
            await stores.users.revoke_key(user.user_id, key_of("ada")[:8], AuditEntry("ada", "key_revoked"))
        elif what == "key-expired":
            await stores.database.execute(
                "UPDATE api_keys SET expires_at = now(), login_ends_at = now() + interval '1 hour'"
            )
        elif what == "login-ended":
            await stores.database.execute(
                "UPDATE api_keys SET login_ends_at = now() WHERE key_id = (SELECT max(key_id) FROM api_keys)"
            )
        elif what == "user-disabled":
            entry = AuditEntry("root", "user_disabled", "ada")
            await stores.users.set_active("ada", is_active=False, audit=entry)
        else:
            await stores.database.execute(
                "UPDATE reservation_records SET status = 'cancelled', ended_at = now() "
                "WHERE reservation_id = $1",
                reservation,
            )
