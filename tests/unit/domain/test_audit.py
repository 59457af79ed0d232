"""The chain of the audit log: whatever is done to it afterwards is found and named."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta, timezone

import pytest

from gpudev.domain.audit import (
    GENESIS,
    LATE,
    AuditAction,
    AuditEntry,
    AuditRecord,
    FindingKind,
    Seal,
    SealedEntry,
    check_seal,
    digest_of,
    find_added,
    make_seal,
    tidy,
)
from gpudev.texts.vocabulary import OperationKind
from tests.support.reservations import NOON

ENTRY = AuditEntry("ada", AuditAction.SUBMIT, "7f3a91c2", "10.0.0.1")


def a_record(entry_id: int, **changes: str) -> AuditRecord:
    return AuditRecord(entry_id, NOON + timedelta(seconds=entry_id), replace(ENTRY, **changes))


def sealed(records: Sequence[AuditRecord]) -> list[SealedEntry]:
    return [SealedEntry(record.entry_id, digest_of(record), record) for record in records]


FIRST = [a_record(1), a_record(2), a_record(4)]
SECOND = [a_record(3), a_record(5)]
SEAL_1 = make_seal(None, FIRST, NOON)
SEAL_2 = make_seal(SEAL_1, SECOND, NOON + timedelta(seconds=9))


def test_a_chain_that_nobody_touched_is_intact() -> None:
    assert check_seal(SEAL_1, None, sealed(FIRST)) == ()
    assert check_seal(SEAL_2, SEAL_1, sealed(SECOND)) == ()


def test_a_seal_says_what_it_is_over() -> None:
    assert (SEAL_1.number, SEAL_1.first_id, SEAL_1.last_id, SEAL_1.entries) == (1, 1, 4, 3)
    assert SEAL_1.previous_hash == GENESIS
    assert (SEAL_2.number, SEAL_2.previous_hash) == (2, SEAL_1.hash)


def test_the_canonical_form_never_changes() -> None:
    """Logs that were sealed by an earlier version must verify with this one."""
    assert digest_of(a_record(1)).hex() == "0d75aec485539aa7a655738b6443d79e44e7595fad5e295ba5c652c53e556c60"


def test_the_digest_does_not_depend_on_the_zone_that_a_time_is_told_in() -> None:
    elsewhere = a_record(1)
    moved = replace(elsewhere, at=elsewhere.at.astimezone(timezone(timedelta(hours=5))))
    assert digest_of(moved) == digest_of(elsewhere)


@pytest.mark.parametrize(
    "changes",
    [
        {"username": "eve"},
        {"action": "cancel"},
        {"target": "other"},
        {"address": "10.0.0.2"},
        {"outcome": "refused"},
        {"detail": "x"},
        # The border between two fields is part of the form.
        {"username": "ad", "action": "asubmit"},
    ],
    ids=str,
)
def test_a_changed_entry_is_named(changes: dict[str, str]) -> None:
    found = sealed(FIRST)
    found[1] = replace(found[1], record=a_record(2, **changes))
    (finding,) = check_seal(SEAL_1, None, found)
    assert (finding.kind, finding.entry_id, finding.seal_number) == (FindingKind.CHANGED, 2, 1)


def test_a_changed_time_is_named() -> None:
    found = sealed(FIRST)
    found[0] = replace(found[0], record=replace(FIRST[0], at=NOON))
    (finding,) = check_seal(SEAL_1, None, found)
    assert (finding.kind, finding.entry_id) == (FindingKind.CHANGED, 1)


def test_a_missing_entry_is_named() -> None:
    found = sealed(FIRST)
    found[2] = replace(found[2], record=None)
    (finding,) = check_seal(SEAL_1, None, found)
    assert (finding.kind, finding.entry_id) == (FindingKind.MISSING, 4)


@pytest.mark.parametrize(
    "records",
    [
        pytest.param(FIRST[:2], id="entry-and-digest-removed"),
        pytest.param([*FIRST, a_record(6)], id="entry-and-digest-added"),
        pytest.param([a_record(1, username="eve"), *FIRST[1:]], id="entry-and-digest-changed"),
    ],
)
def test_digests_that_were_changed_as_well_break_the_seal(records: list[AuditRecord]) -> None:
    (finding,) = check_seal(SEAL_1, None, sealed(records))
    assert (finding.kind, finding.seal_number) == (FindingKind.BROKEN_SEAL, 1)


@pytest.mark.parametrize(
    "forged",
    [
        replace(SEAL_2, first_id=2),
        replace(SEAL_2, last_id=9),
        replace(SEAL_2, entries=3),
        replace(SEAL_2, known_until=NOON),
        replace(SEAL_2, hash=bytes(32)),
    ],
    ids=["first", "last", "entries", "until", "hash"],
)
def test_a_changed_seal_is_broken(forged: Seal) -> None:
    assert [found.kind for found in check_seal(forged, SEAL_1, sealed(SECOND))] == [FindingKind.BROKEN_SEAL]


def test_a_seal_that_was_made_anew_does_not_fit_the_next_one() -> None:
    forged = [a_record(1, username="eve"), *FIRST[1:]]
    anew = make_seal(None, forged, NOON)
    assert check_seal(anew, None, sealed(forged)) == ()
    (finding,) = check_seal(SEAL_2, anew, sealed(SECOND))
    assert (finding.kind, finding.seal_number) == (FindingKind.BROKEN_CHAIN, 2)


def test_a_missing_seal_is_named() -> None:
    third = make_seal(SEAL_2, [a_record(7)], NOON + timedelta(minutes=1))
    (finding,) = check_seal(SEAL_2, None, sealed(SECOND))
    assert (finding.kind, finding.message) == (FindingKind.MISSING, "Seal 1 is missing.")
    (finding,) = check_seal(third, None, sealed([a_record(7)]))
    assert finding.message == "Seals 1 to 2 are missing."


@pytest.mark.parametrize(
    "at, is_added",
    [
        (NOON - LATE - timedelta(microseconds=1), True),
        (NOON - LATE, False),
        (NOON - timedelta(seconds=20), False),
        (NOON + timedelta(hours=1), False),
    ],
    ids=["too-old", "just-not", "late-commit", "new"],
)
def test_an_entry_older_than_a_seal_that_came_without_it_was_added(at: datetime, *, is_added: bool) -> None:
    record = AuditRecord(9, at, ENTRY)
    assert [finding.entry_id for finding in find_added([record], SEAL_1)] == ([9] if is_added else [])


@pytest.mark.parametrize(
    "text, kept",
    [("plain ü", "plain ü"), ("a\0b\nc\x1b[31m", "a?b?c?[31m"), ("\ud800", "?"), ("x" * 999, "x" * 200)],
    ids=["plain", "control", "surrogate", "long"],
)
def test_what_somebody_sent_is_made_fit_for_the_log(text: str, kept: str) -> None:
    assert tidy(text) == kept


def test_before_the_first_seal_nothing_is_too_old() -> None:
    assert find_added([a_record(1)], None) == ()


def test_every_operation_is_an_action_that_can_be_audited() -> None:
    assert {kind.value for kind in OperationKind} <= {action.value for action in AuditAction}
