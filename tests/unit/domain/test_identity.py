"""What an ARN says about somebody, and who of them is let in."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpudev.domain.errors import Defect, NotAllowed
from gpudev.domain.identity import AccessPolicy, read_arn

POLICY = AccessPolicy(frozenset({"123456789012"}), "Developers")


@pytest.mark.parametrize(
    "resource,role,name",
    [
        ("assumed-role/Developers/ada", "Developers", "ada"),
        ("assumed-role/Developers/ada@example.org", "Developers", "ada@example.org"),
        ("role/Developers", "Developers", "Developers"),
        ("role/some/path/Developers", "Developers", "Developers"),
        ("user/ada", "", "ada"),
        ("user/Developers/ada", "", "ada"),
        ("federated-user/ada", "", "ada"),
        ("assumed-role/Developers", "", "Developers"),
        ("root", "", "root"),
    ],
)
def test_an_arn_says_account_role_and_name(resource: str, role: str, name: str) -> None:
    identity = read_arn(f"arn:aws:sts::123456789012:{resource}")
    assert (identity.account, identity.role, identity.name) == ("123456789012", role, name)


@pytest.mark.parametrize("text", ["", "ada", "arn:aws:sts::1", "urn:aws:sts::1:user/ada"])
def test_what_is_no_arn_is_a_defect(text: str) -> None:
    with pytest.raises(Defect):
        read_arn(text)


@pytest.mark.parametrize(
    "name,username",
    [("ada", "ada"), ("ada@example.org", "ada-example.org"), ("A.d_a-1", "A.d_a-1"), ("a+b=c,d", "a-b-c-d")],
)
def test_a_username_has_only_harmless_characters(name: str, username: str) -> None:
    assert read_arn(f"arn:aws:sts::1:assumed-role/r/{name}").username == username


@given(st.text(min_size=1).filter(lambda name: "/" not in name))
def test_every_name_gives_a_username(name: str) -> None:
    assert re.fullmatch(r"[A-Za-z0-9._-]+", read_arn(f"arn:aws:sts::1:assumed-role/r/{name}").username)


@pytest.mark.parametrize(
    "arn,code",
    [
        ("arn:aws:sts::999999999999:assumed-role/Developers/ada", "account_not_allowed"),
        ("arn:aws:sts::123456789012:assumed-role/Guests/ada", "role_not_allowed"),
        ("arn:aws:sts::123456789012:assumed-role/developers/ada", "role_not_allowed"),
        ("arn:aws:iam::123456789012:user/Developers", "role_not_allowed"),
        ("arn:aws:iam::123456789012:user/Developers/ada", "role_not_allowed"),
    ],
)
def test_others_are_turned_away(arn: str, code: str) -> None:
    with pytest.raises(NotAllowed) as caught:
        POLICY.check(read_arn(arn))
    assert caught.value.code == code


def test_the_right_account_and_role_come_in() -> None:
    POLICY.check(read_arn("arn:aws:sts::123456789012:assumed-role/Developers/ada"))
