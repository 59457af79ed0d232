"""The audit log: who did what, on what, from where, and the chain of seals that shows it unchanged.

Entries are appended and never touched again. Some seconds later a *seal* is made over those that have
none yet: it keeps a digest of each entry, and a hash over those digests and the hash of the seal before.
Whoever changes, removes or adds an entry afterwards no longer fits the chain, and is found by its number.

Entries are committed out of order, so a seal cannot take "all up to this number". It takes whatever has
no seal yet, and says until when it knows the log. A transaction takes seconds at most, so an entry that
is older by more than `LATE` than what a seal knows, and in no seal, was not written by us at its time.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum

from gpudev.texts.fact import Fact, fact
from gpudev.texts.sentences import say

GENESIS = bytes(32)
"""What the first seal names as the hash before it."""

LATE = timedelta(minutes=5)
"""Longer than any transaction of ours may take, the limits of its connection considered."""

MAX_TEXT = 200
"""Enough for every name there is; what somebody sends instead of a name is cut."""


SERVER_ITSELF = "(server)"
"""Stands for the user where nobody asked. No user can have brackets in the name."""


class AuditAction(StrEnum):
    """What this version writes. A log outlives its writers, so the database takes any word."""

    LOGIN = "login"
    KEY_ISSUED = "key_issued"
    KEY_ROTATED = "key_rotated"
    KEY_REVOKED = "key_revoked"
    WRONG_KEY = "wrong_key"
    """A request came with a key that is unknown, expired or revoked."""
    OPEN_TUNNEL = "open_tunnel"
    CLOSE_TUNNEL = "close_tunnel"
    """An SSH connection through the proxy; what passed through it is in the detail."""
    GITHUB_BOUND = "github_bound"
    """A user has proved which GitHub user they are."""
    SUBMIT = "submit"
    CANCEL = "cancel"
    EXTEND = "extend"
    KEEP = "keep"
    STOP = "stop"
    START = "start"
    SET_NOTIFICATIONS = "set_notifications"
    READ_USAGE = "read_usage"
    DISK_CREATE = "disk_create"
    DISK_CLONE = "disk_clone"
    DISK_GROW = "disk_grow"
    DISK_RENAME = "disk_rename"
    DISK_DELETE = "disk_delete"
    DISK_RESTORE = "disk_restore"
    CHECK_DISKS = "check_disks"
    """An admin asked how disks and their storage differ."""
    LIST_JOBS = "list_jobs"
    """An admin listed other users' reservations."""
    VIEW_JOB = "view_job"
    """An admin looked up another user's reservation, to read it or to act on it."""
    LIST_USERS = "list_users"
    DISABLE_USER = "disable_user"
    ENABLE_USER = "enable_user"
    LIST_NODES = "list_nodes"
    DRAIN_NODE = "drain_node"
    UNDRAIN_NODE = "undrain_node"
    LIST_DEAD_LETTERS = "list_dead_letters"
    RETRY_DEAD_LETTER = "retry_dead_letter"
    DROP_DEAD_LETTER = "drop_dead_letter"
    READ_AUDIT = "read_audit"
    VERIFY_AUDIT = "verify_audit"
    ADMIN = "admin"
    """Somebody who is no admin called a route of admins."""


class AuditOutcome(StrEnum):
    DONE = "done"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """What is to be written down. Never a secret: keys are named by their prefix."""

    username: str
    """Who; empty if nobody knows, as after a failed login."""
    action: str
    target: str = ""
    address: str = ""
    outcome: str = AuditOutcome.DONE
    detail: str = ""


@dataclass(frozen=True, slots=True)
class AuditRecord:
    """An entry as it stands in the log, with the number and the time that the database gave it."""

    entry_id: int
    at: datetime
    entry: AuditEntry


@dataclass(frozen=True, slots=True)
class Seal:
    number: int
    first_id: int
    last_id: int
    entries: int
    known_until: datetime
    """Up to here, less `LATE`, every entry is in this seal or an earlier one."""
    previous_hash: bytes
    hash: bytes


@dataclass(frozen=True, slots=True)
class SealedEntry:
    """An entry's digest as the seal keeps it, with what stands in the log now."""

    entry_id: int
    digest: bytes
    record: AuditRecord | None


class FindingKind(StrEnum):
    CHANGED = "changed"
    MISSING = "missing"
    ADDED = "added"
    BROKEN_SEAL = "broken_seal"
    BROKEN_CHAIN = "broken_chain"


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that is not as it was sealed."""

    kind: FindingKind
    fact: Fact
    entry_id: int | None = None
    seal_number: int | None = None

    @property
    def message(self) -> str:
        """The words for logs and tests, with times in UTC."""
        return say(self.fact)


def tidy(text: str) -> str:
    """What somebody sent, as the log takes it: one line that can be stored and printed anywhere."""
    return make_printable(text[:MAX_TEXT])


def make_printable(text: str) -> str:
    """One line without anything that a terminal would act on."""
    return "".join(character if character.isprintable() else "?" for character in text)


def digest_of(record: AuditRecord) -> bytes:
    """SHA-256 over the canonical form: a JSON array of all fields, the time in microseconds of UTC."""
    entry = record.entry
    words = (entry.username, entry.action, entry.target, entry.address, entry.outcome, entry.detail)
    return _sha256([record.entry_id, _moment(record.at), *map(str, words)])


def make_seal(previous: Seal | None, records: Sequence[AuditRecord], known_until: datetime) -> Seal:
    """The next seal of the chain, over these entries."""
    ids = [record.entry_id for record in records]
    unhashed = Seal(
        number=previous.number + 1 if previous else 1,
        first_id=min(ids),
        last_id=max(ids),
        entries=len(ids),
        known_until=known_until,
        previous_hash=previous.hash if previous else GENESIS,
        hash=b"",
    )
    digests = {record.entry_id: digest_of(record) for record in records}
    return _hashed(unhashed, digests)


def check_seal(seal: Seal, previous: Seal | None, sealed: Sequence[SealedEntry]) -> tuple[Finding, ...]:
    """What is wrong with a seal, its place in the chain and the entries under it."""
    return (*_check_place(seal, previous), *_check_hash(seal, sealed), *_check_entries(seal, sealed))


def find_added(unsealed: Iterable[AuditRecord], last: Seal | None) -> tuple[Finding, ...]:
    """Entries that claim to be older than what was sealed after them."""
    if last is None:
        return ()
    return tuple(
        Finding(
            FindingKind.ADDED,
            fact(
                "audit_entry_added",
                entry=record.entry_id,
                at=_moment(record.at),
                seal=last.number,
                sealed_at=_moment(last.known_until),
            ),
            entry_id=record.entry_id,
        )
        for record in unsealed
        if record.at < last.known_until - LATE
    )


def _check_place(seal: Seal, previous: Seal | None) -> Iterator[Finding]:
    expected = previous.number + 1 if previous else 1
    if seal.number != expected:
        last = seal.number - 1
        missing = (
            fact("audit_seals_missing", first=expected, last=last)
            if last > expected
            else fact("audit_seal_missing", seal=expected)
        )
        yield Finding(FindingKind.MISSING, missing, seal_number=expected)
    elif seal.previous_hash != (previous.hash if previous else GENESIS):
        broken = (
            fact("audit_chain_broken", seal=seal.number, previous=previous.number)
            if previous
            else fact("audit_chain_broken_at_start", seal=seal.number)
        )
        yield Finding(FindingKind.BROKEN_CHAIN, broken, seal_number=seal.number)


def _check_hash(seal: Seal, sealed: Sequence[SealedEntry]) -> Iterator[Finding]:
    digests = {entry.entry_id: entry.digest for entry in sealed}
    if _hashed(seal, digests).hash != seal.hash or len(digests) != seal.entries:
        yield Finding(
            FindingKind.BROKEN_SEAL,
            fact(
                "audit_seal_changed",
                seal=seal.number,
                first=seal.first_id,
                last=seal.last_id,
                entries=seal.entries,
                found=len(digests),
            ),
            seal_number=seal.number,
        )


def _check_entries(seal: Seal, sealed: Sequence[SealedEntry]) -> Iterator[Finding]:
    for entry in sealed:
        if entry.record is None:
            kind, found = FindingKind.MISSING, fact("audit_entry_missing", entry=entry.entry_id)
        elif digest_of(entry.record) != entry.digest:
            kind, found = FindingKind.CHANGED, fact("audit_entry_changed", entry=entry.entry_id)
        else:
            continue
        yield Finding(kind, found, entry.entry_id, seal.number)


def _hashed(seal: Seal, digests: dict[int, bytes]) -> Seal:
    """The seal with the hash that belongs to it and to these digests."""
    content = [
        seal.number,
        seal.previous_hash.hex(),
        _moment(seal.known_until),
        seal.first_id,
        seal.last_id,
        seal.entries,
        [[entry_id, digests[entry_id].hex()] for entry_id in sorted(digests)],
    ]
    return Seal(
        number=seal.number,
        first_id=seal.first_id,
        last_id=seal.last_id,
        entries=seal.entries,
        known_until=seal.known_until,
        previous_hash=seal.previous_hash,
        hash=_sha256(content),
    )


def _sha256(content: list[object]) -> bytes:
    return hashlib.sha256(json.dumps(content, separators=(",", ":")).encode()).digest()


def _moment(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="microseconds")
