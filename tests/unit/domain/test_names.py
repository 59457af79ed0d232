"""Names and ids: what is taken, what is refused, and that a name never reads as an id."""

from __future__ import annotations

import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpudev.domain.catalogue import DEFAULT_CATALOGUE
from gpudev.domain.errors import Invalid
from gpudev.domain.names import (
    ReservationId,
    check_client_version,
    check_environment,
    check_environment_name,
    check_github_user,
    check_image,
    check_reservation_name,
    default_reservation_name,
    find_id_range,
    id8,
    is_id_prefix,
    is_reservation_name,
    normalise_name,
    parse_reservation_id,
    server_name,
    suffix_name,
)
from tests.support.budgets import QUICK

ID = ReservationId("7f3a91c2-1d5e-4c6b-9a00-0123456789ab")


def test_pods_files_and_hosts_are_named_by_the_first_eight_characters() -> None:
    assert id8(ID) == "7f3a91c2"
    assert server_name(ID) == "gpu-dev-7f3a91c2"


@pytest.mark.parametrize("gpu_type", DEFAULT_CATALOGUE.by_name)
def test_default_name_is_one_that_a_user_could_have_chosen(gpu_type: str) -> None:
    name = default_reservation_name(gpu_type, ID)
    assert name == f"{gpu_type}-7f3a91c2"
    assert check_reservation_name(name) == name


@pytest.mark.parametrize("name", ["my-run", "x", "run-1", "g" * 40, "a100-7f3a91c2", "cafe-babe", "0g"])
def test_name_is_taken(name: str) -> None:
    assert check_reservation_name(name) == name


@pytest.mark.parametrize("name", ["", "My-run", "my_run", "my run", "ü", "g" * 41, "run\n", "a/b"])
def test_what_is_not_a_name_is_refused(name: str) -> None:
    with pytest.raises(Invalid) as refused:
        check_reservation_name(name)
    assert refused.value.code == "bad_name"
    assert refused.value.hint


@pytest.mark.parametrize("name", ["a", "123", "deadbeef", "deadbeef00", "7f3a91c2-1d", "7f3a91c2-"])
def test_name_that_reads_as_an_id_is_refused(name: str) -> None:
    with pytest.raises(Invalid, match="could be taken for a reservation id"):
        check_reservation_name(name)


@pytest.mark.parametrize("text", ["7f3a", "7f3a91c2", "7f3a91c2-", "7f3a91c2-1d5e-4", str(ID)])
def test_start_of_an_id_is_known_as_one(text: str) -> None:
    assert is_id_prefix(text)


@pytest.mark.parametrize(
    "text", ["", "7f3", "7F3A", "7f3g", "a100-7f3a91c2", "----", f"{ID}0", "7f3a91c21d5e"]
)
def test_other_text_is_not_the_start_of_an_id(text: str) -> None:
    assert not is_id_prefix(text)


@QUICK
@given(number=st.uuids(), length=st.integers(4, 36))
def test_no_start_of_any_id_is_a_legal_name(number: uuid.UUID, length: int) -> None:
    start = str(number)[:length]
    assert is_id_prefix(start)
    with pytest.raises(Invalid):
        check_reservation_name(start)


@pytest.mark.parametrize(
    "text,first,last",
    [
        (ID, ID, ID),
        ("7f3a", "7f3a0000-0000-0000-0000-000000000000", "7f3affff-ffff-ffff-ffff-ffffffffffff"),
        ("7f3a91c2-", "7f3a91c2-0000-0000-0000-000000000000", "7f3a91c2-ffff-ffff-ffff-ffffffffffff"),
    ],
)
def test_the_start_of_an_id_is_a_range_of_ids(text: str, first: str, last: str) -> None:
    assert find_id_range(text) == (first, last)


@pytest.mark.parametrize("text", ["", "7f3", "my-run", "7f3a91c21d5e", f"{ID}0"])
def test_other_text_is_no_range_of_ids(text: str) -> None:
    assert find_id_range(text) is None


@pytest.mark.parametrize("name", ["HOME", "_x", "WANDB_API_KEY", "a1", "CUDA_HOME"])
def test_environment_name_is_taken(name: str) -> None:
    assert check_environment_name(name) == name


@pytest.mark.parametrize("name", ["", "1A", "A-B", "A B", "A=B", "Ä", "A\n"])
def test_what_no_shell_could_export_is_refused(name: str) -> None:
    with pytest.raises(Invalid) as refused:
        check_environment_name(name)
    assert refused.value.code == "bad_env_var"


@pytest.mark.parametrize("name", ["NVIDIA_VISIBLE_DEVICES", "NVIDIA_X", "CUDA_VISIBLE_DEVICES", "GPU_DEV_ID"])
def test_our_own_environment_names_are_refused(name: str) -> None:
    with pytest.raises(Invalid) as refused:
        check_environment_name(name)
    assert refused.value.code == "reserved_env_var"
    assert name in refused.value.message


@pytest.mark.parametrize(
    "text, name",
    [
        ("my-run", "my-run"),
        ("My Run!", "my-run"),
        ("train - Node 1/2", "train-node-1-2"),
        ("x" * 39 + " y", "x" * 39),
        ("-_-", ""),
        ("", ""),
        ("Größe", "gr-e"),
    ],
)
def test_text_is_turned_into_the_nearest_name(text: str, name: str) -> None:
    assert normalise_name(text) == name


@QUICK
@given(text=st.text(), number=st.uuids())
def test_what_any_text_is_turned_into_can_be_made_a_name_of_ones_own(text: str, number: uuid.UUID) -> None:
    wish = normalise_name(text)
    suffixed = suffix_name(wish, ReservationId(str(number)))
    assert is_reservation_name(suffixed)
    assert check_reservation_name(suffixed).endswith(f"-{str(number)[:8]}")
    assert not wish or is_reservation_name(wish) or all(c in "0123456789abcdef-" for c in wish)


@QUICK
@given(wish=st.uuids(), length=st.integers(1, 36), number=st.uuids())
def test_a_start_of_an_id_is_made_a_name_that_is_none(
    wish: uuid.UUID, length: int, number: uuid.UUID
) -> None:
    suffixed = suffix_name(normalise_name(str(wish)[:length]), ReservationId(str(number)))
    assert is_reservation_name(suffixed)
    assert not is_id_prefix(suffixed)


@QUICK
@given(number=st.uuids())
def test_an_id_in_any_letter_case_is_that_id(number: uuid.UUID) -> None:
    assert parse_reservation_id(str(number).upper()) == str(number)


@pytest.mark.parametrize("text", ["", "x", ID[:-1], f"{ID}0", ID.replace("-", ""), f"{{{ID}}}", f"{ID}\n"])
def test_other_text_is_no_id(text: str) -> None:
    with pytest.raises(Invalid) as refused:
        parse_reservation_id(text)
    assert refused.value.code == "bad_reservation_id"


@pytest.mark.parametrize("name", ["a", "Ada-L", "octo-cat_corp", "0x"])
def test_github_user_is_taken_in_lower_case(name: str) -> None:
    assert check_github_user(name) == name.lower()


@pytest.mark.parametrize("name", ["", "-a", "a-", "../etc", "a/b", "a.b", "a b", "a\n", "a" * 65, "ä"])
def test_what_github_would_not_call_a_user_is_refused(name: str) -> None:
    with pytest.raises(Invalid) as refused:
        check_github_user(name)
    assert refused.value.code == "bad_github_user"


@pytest.mark.parametrize("version", ["", "0.4.0", "0.4.0.dev1+g12-dirty_x"])
def test_client_version_is_taken(version: str) -> None:
    assert check_client_version(version) == version


@pytest.mark.parametrize("version", ["1\0", "one two", "x" * 65, "ä", "1\n"])
def test_client_version_that_is_none_is_refused(version: str) -> None:
    with pytest.raises(Invalid) as refused:
        check_client_version(version)
    assert refused.value.code == "bad_client_version"


@pytest.mark.parametrize("value", ["a\0b", "\ud800", "x\udfff"], ids=ascii)
def test_value_that_cannot_be_stored_is_refused(value: str) -> None:
    with pytest.raises(Invalid) as refused:
        check_environment({"A": value})
    assert refused.value.code == "bad_env_var"


@pytest.mark.parametrize(
    "name",
    [
        "",
        "debian",
        "pytorch/pytorch:2.8.0-cuda12.9-cudnn9-devel",
        "registry.example:5000/team/image_x:v1",
        f"ghcr.io/a/b@sha256:{'0' * 64}",
    ],
)
def test_an_image_that_a_registry_may_have_is_taken(name: str) -> None:
    assert check_image(name) == name


@pytest.mark.parametrize(
    "name", ["Debian", "a b", "a/", "a:", "$(id)", "a@sha256:12", "x" * 401, "-a", "a//b"]
)
def test_what_no_registry_could_have_is_refused(name: str) -> None:
    with pytest.raises(Invalid) as refusal:
        check_image(name)
    assert refusal.value.code == "bad_image"
