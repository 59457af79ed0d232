"""Names, sizes and moves of disks."""

from __future__ import annotations

import pytest

from gpudev.domain.disk import (
    DELETED,
    MOVES,
    SOFT_DELETE_LASTS,
    Disk,
    check_disk_name,
    check_growth,
    check_size,
    is_purgeable,
    move,
    restore,
    soft_delete,
)
from gpudev.domain.errors import IllegalMove, Invalid
from gpudev.texts.vocabulary import DiskState
from tests.support.disk_values import make_disk
from tests.support.domain_values import HOUR, NOW


@pytest.mark.parametrize("name", ["default", "My_Data-2", "a", "9" * 50])
def test_a_name_may_have_letters_digits_dashes_and_underscores(name: str) -> None:
    assert check_disk_name(name) == name


@pytest.mark.parametrize("name", ["", "a b", "ä", "x" * 51, "a/b", "..", "none", "None", "a\n"])
def test_other_names_are_refused(name: str) -> None:
    with pytest.raises(Invalid) as refused:
        check_disk_name(name)
    assert refused.value.code == "bad_disk_name"


@pytest.mark.parametrize("size, fits", [(9, False), (10, True), (10_000, True), (10_001, False)])
def test_sizes_have_limits(size: int, *, fits: bool) -> None:
    if fits:
        assert check_size(size) == size
        return
    with pytest.raises(Invalid):
        check_size(size)


@pytest.mark.parametrize("size", [50, 100])
def test_a_disk_grows_and_never_shrinks(size: int) -> None:
    assert check_growth(make_disk(size_gb=100), 101) == 101
    with pytest.raises(Invalid, match="100 GB"):
        check_growth(make_disk(size_gb=100), size)


@pytest.mark.parametrize("before", DiskState)
@pytest.mark.parametrize("after", DiskState)
def test_only_the_moves_of_the_table_are_made(before: DiskState, after: DiskState) -> None:
    if after in MOVES[before]:
        assert move(make_disk(before), after).state is after
        return
    with pytest.raises(IllegalMove):
        move(make_disk(before), after)


def test_there_is_no_way_back_from_purging() -> None:
    def reachable(state: DiskState) -> set[DiskState]:
        return {state}.union(*(reachable(after) for after in MOVES[state]))

    assert reachable(DiskState.PURGING) <= DELETED


def test_only_a_soft_delete_leads_to_purging() -> None:
    assert [state for state in DiskState if DiskState.PURGING in MOVES[state]] == [DiskState.SOFT_DELETED]


def test_a_deleted_disk_comes_back_until_its_date() -> None:
    deleted = soft_delete(make_disk(), NOW)
    assert deleted.delete_date == NOW + SOFT_DELETE_LASTS
    assert not is_purgeable(deleted, NOW + SOFT_DELETE_LASTS - HOUR)
    assert is_purgeable(deleted, NOW + SOFT_DELETE_LASTS)
    back = restore(deleted, "other")
    assert (back.spec.name, back.state, back.delete_date) == ("other", DiskState.AVAILABLE, None)


@pytest.mark.parametrize(
    "disk, in_use",
    [
        (make_disk(), False),
        (make_disk(DiskState.ATTACHING), True),
        (make_disk(DiskState.RELEASING), True),
        (make_disk(is_attached=True), True),
        (make_disk(DiskState.SNAPSHOTTING), False),
    ],
    ids=lambda value: value.state if isinstance(value, Disk) else None,
)
def test_who_has_a_disk_uses_it(disk: Disk, *, in_use: bool) -> None:
    assert disk.in_use is in_use
