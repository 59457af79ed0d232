"""Whom the SSH proxy leads to a dev server, and which SSH public keys the server takes."""

from __future__ import annotations

import pytest

from gpudev.domain.access import (
    MAX_PUBLIC_KEYS,
    check_public_keys,
    choose_address,
    combine_public_keys,
    may_connect,
)
from gpudev.domain.errors import Conflict, Invalid, NotFound
from gpudev.domain.names import UserId
from gpudev.texts.vocabulary import Status
from tests.support.domain_values import ADDRESS, make_reservation

BODY = "AAAAC3NzaC1lZDI1NTE5AAAAIHwpPRlAXmC0Y9QJ0c1W3mVqTzj0E2D8xw1k7v5bWn0q"
KEY = f"ssh-ed25519 {BODY}"


@pytest.mark.parametrize(
    "key",
    [
        KEY,
        f"{KEY} ada@example.org",
        f"{KEY} a comment with spaces and ü",
        f"ssh-rsa {BODY}==",
        f"ecdsa-sha2-nistp256 {BODY}=",
        f"ecdsa-sha2-nistp384 {BODY}",
        f"ecdsa-sha2-nistp521 {BODY}",
        f"sk-ssh-ed25519@openssh.com {BODY}",
        f"sk-ecdsa-sha2-nistp256@openssh.com {BODY}",
    ],
)
def test_key_is_taken(key: str) -> None:
    assert check_public_keys((key,)) == (key,)


def test_space_around_a_key_is_dropped() -> None:
    assert check_public_keys((f"  {KEY}\n",)) == (KEY,)


@pytest.mark.parametrize(
    "key",
    [
        pytest.param("", id="empty"),
        pytest.param(f"ssh-dss {BODY}", id="a kind that is broken"),
        pytest.param("ssh-ed25519", id="no body"),
        pytest.param("ssh-ed25519 AAAA", id="too short"),
        pytest.param(f"ssh-ed25519 {BODY}!", id="not base64"),
        pytest.param(f"{KEY}\n{KEY}", id="two in one"),
        pytest.param(f"{KEY} comment\ncommand", id="a second line in the comment"),
        pytest.param(f'command="/bin/true" {KEY}', id="options"),
        pytest.param("-----BEGIN OPENSSH PRIVATE KEY-----", id="a private key"),
    ],
)
def test_what_is_not_exactly_one_plain_key_is_refused(key: str) -> None:
    with pytest.raises(Invalid) as refused:
        check_public_keys((KEY, key))
    assert refused.value.code == "bad_ssh_key"


def test_no_key_at_all_is_refused_with_the_way_to_make_one() -> None:
    with pytest.raises(Invalid) as refused:
        check_public_keys(())
    assert refused.value.code == "no_ssh_key"
    assert "ssh-keygen" in refused.value.hint


def test_number_of_keys_is_limited() -> None:
    assert len(check_public_keys((KEY,) * MAX_PUBLIC_KEYS)) == MAX_PUBLIC_KEYS
    with pytest.raises(Invalid, match="More than"):
        check_public_keys((KEY,) * (MAX_PUBLIC_KEYS + 1))


def test_keys_are_combined_in_order_and_each_once_whatever_its_comment() -> None:
    other = f"ssh-rsa {BODY}"
    assert combine_public_keys([f"{KEY} laptop", other], [KEY, f" {other} x"]) == (f"{KEY} laptop", other)
    assert combine_public_keys([], []) == ()


@pytest.mark.parametrize("user_id, is_led_there", [(1, True), (2, False)], ids=["owner", "somebody-else"])
def test_only_the_owner_is_led_to_a_server(user_id: int, is_led_there: bool) -> None:  # noqa: FBT001
    reservation = make_reservation(status=Status.ACTIVE, user_id=UserId(1))
    assert may_connect(reservation, UserId(user_id)) is is_led_there


def test_each_node_of_an_active_reservation_has_its_address() -> None:
    gang = make_reservation(status=Status.ACTIVE, nodes=("a", "b"))
    assert [choose_address(gang, rank) for rank in (0, 1)] == [ADDRESS, ADDRESS]
    with pytest.raises(NotFound, match="no node 2"):
        choose_address(gang, 2)


@pytest.mark.parametrize("status", [status for status in Status if status is not Status.ACTIVE])
def test_what_is_not_active_has_nothing_to_connect_to(status: Status) -> None:
    with pytest.raises(Conflict) as refused:
        choose_address(make_reservation(status=status), 0)
    assert refused.value.code == "not_active"
