"""What an ARN says about somebody, and who of them is let in."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpudev.domain.errors import Defect, NotAllowed
from gpudev.domain.identity import AccessPolicy, read_arn

SSO = "arn:aws:sts::123456789012:assumed-role/AWSReservedSSO"
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
        (f"{SSO}_Guests_0123456789abcdef/ada", "role_not_allowed"),
        (f"{SSO}_Developers/ada", "role_not_allowed"),
        (f"{SSO}_Developers_/ada", "role_not_allowed"),
        (f"{SSO}_Developers_0123456789abcde/ada", "role_not_allowed"),
        (f"{SSO}_Developers_0123456789abcdef0/ada", "role_not_allowed"),
        (f"{SSO}_Developers_0123456789ABCDEF/ada", "role_not_allowed"),
        (f"{SSO}_Developers_0123456789abcdef_0123456789abcdef/ada", "role_not_allowed"),
        (f"{SSO}_developers_0123456789abcdef/ada", "role_not_allowed"),
        (f"{SSO}_Developers_0123456789abcdef\n/ada", "role_not_allowed"),
        ("arn:aws:sts::123456789012:assumed-role/Developers_0123456789abcdef/ada", "role_not_allowed"),
        (
            "arn:aws:sts::123456789012:assumed-role/x-AWSReservedSSO_Developers_0123456789abcdef/ada",
            "role_not_allowed",
        ),
        (
            "arn:aws:sts::123456789012:assumed-role/ada/AWSReservedSSO_Developers_0123456789abcdef",
            "role_not_allowed",
        ),
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


@pytest.mark.parametrize(
    "allowed,role",
    [
        ("Developers", "AWSReservedSSO_Developers_0123456789abcdef"),
        ("Gpu_Developers", "AWSReservedSSO_Gpu_Developers_fedcba9876543210"),
        ("AWSReservedSSO_Developers_0123456789abcdef", "AWSReservedSSO_Developers_0123456789abcdef"),
    ],
)
def test_a_permission_set_of_identity_center_is_a_role(allowed: str, role: str) -> None:
    identity = read_arn(f"arn:aws:sts::123456789012:assumed-role/{role}/ada@example.org")
    AccessPolicy(frozenset({"123456789012"}), allowed).check(identity)
    assert identity.role == role
