"""`gpu-dev admin`: what it asks for, what it prints, and how it ends."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from gpudev.cli.render.admin import format_audit, format_users, format_verification
from gpudev.cli.render.times import Now
from gpudev.client import codec
from gpudev.wire.admin import (
    AuditEntryDetail,
    AuditFinding,
    AuditPage,
    AuditVerification,
    UsageRow,
    UsageTable,
    UserDetail,
)
from tests.support.fake_api import FakeApi, Reply
from tests.support.golden import check_golden
from tests.support.wire_values import NOW
from tests.unit.cli.conftest import GpuDev

CLOCK = Now(NOW, UTC)
ADA = UserDetail(
    user_id=1,
    username="ada",
    is_active=True,
    created_at=NOW - timedelta(days=30),
    live_reservations=2,
    last_used_at=NOW,
)
EVE = UserDetail(
    user_id=2, username="eve", is_active=False, created_at=NOW - timedelta(hours=1), live_reservations=0
)
ENTRIES = [
    AuditEntryDetail(
        entry_id=12,
        at=NOW,
        username="ada",
        action="cancel",
        target="7f3a91c2-1111-4222-8333-444455556666",
        address="192.0.2.1",
        outcome="done",
        detail="Of eve.",
    ),
    AuditEntryDetail(
        entry_id=7,
        at=NOW - timedelta(days=40),
        username="",
        action="login",
        target="local",
        address="2001:db8::1",
        outcome="refused",
        detail="The login proof is too old.",
    ),
]
INTACT = AuditVerification(
    is_intact=True,
    seals=3,
    sealed_entries=41,
    waiting_entries=2,
    findings=[],
    last_seal=3,
    last_hash="9f" * 32,
)
BROKEN = AuditVerification(
    is_intact=False,
    seals=1,
    sealed_entries=1,
    waiting_entries=0,
    findings=[
        AuditFinding(kind="changed", message="Entry 2 was changed after it was sealed.", entry_id=2),
        AuditFinding(kind="missing", message="Entry 3 is missing.", entry_id=3),
    ],
    last_seal=1,
    last_hash="9f" * 32,
)


def test_users_as_a_table() -> None:
    check_golden("cli/admin_users.txt", format_users([ADA, EVE], CLOCK))


def test_audit_as_a_table() -> None:
    check_golden("cli/admin_audit.txt", format_audit(ENTRIES, CLOCK))


def test_verification_in_words() -> None:
    check_golden(
        "cli/admin_audit_verify.txt", f"{format_verification(INTACT)}\n\n{format_verification(BROKEN)}"
    )


@pytest.mark.parametrize("names", [("users",), ("audit",), ("audit", "verify"), ()], ids="-".join)
def test_help(gpu_dev: GpuDev, names: tuple[str, ...]) -> None:
    result = gpu_dev("admin", *names, "-h")
    assert result.code == 0
    check_golden(f"cli/help_{'_'.join(('admin', *names))}.txt", result.out.rstrip("\n"))


def test_users_are_listed_in_every_form(gpu_dev: GpuDev, api: FakeApi) -> None:
    api.on("GET", "/v1/admin/users", Reply(body={"users": codec.encode([ADA, EVE])}))
    assert "disabled" in gpu_dev("admin", "users").out
    assert json.loads(gpu_dev("admin", "users", "--json").out)["users"] == codec.encode([ADA, EVE])
    assert gpu_dev("admin", "users", "-o", "name").out == "ada\neve\n"
    assert gpu_dev("admin", "users", "-o", "yaml").out.startswith("users:\n")


@pytest.mark.parametrize("verb", ["disable", "enable"])
def test_a_user_is_disabled_and_enabled_by_name(gpu_dev: GpuDev, api: FakeApi, verb: str) -> None:
    changed = {"username": "a b", "is_active": verb == "enable", "message": "Done."}
    api.on("POST", f"/v1/admin/users/a%20b/{verb}", Reply(body=changed))
    assert gpu_dev("admin", "users", verb, "a b").out == "Done.\n"
    assert json.loads(gpu_dev("admin", "users", verb, "a b", "--json").out) == changed


def test_who_is_no_admin_is_told_so(gpu_dev: GpuDev, api: FakeApi) -> None:
    refused = {"detail": "ada is not an admin.", "code": "not_allowed", "hint": "Ask your operator."}
    api.on("GET", "/v1/admin/users", Reply(403, refused))
    result = gpu_dev("admin", "users")
    assert result.code == 4
    assert "ada is not an admin." in result.err


def asked(api: FakeApi) -> dict[str, list[str]]:
    return parse_qs(urlsplit(api.seen("GET", "/v1/admin/audit")[-1].path).query)


def test_audit_asks_for_the_right_entries(gpu_dev: GpuDev, api: FakeApi) -> None:
    api.on("GET", "/v1/admin/audit", Reply(body=codec.encode(AuditPage(entries=ENTRIES, next_before=7))))
    result = gpu_dev("admin", "audit", "--user", "ada", "--action", "cancel", "--before", "20")
    assert result.code == 0
    assert "--before 7" in result.err
    assert asked(api) == {"user": ["ada"], "action": ["cancel"], "before": ["20"], "limit": ["50"]}


@pytest.mark.parametrize(
    "typed, ago", [("2h", timedelta(hours=2)), ("3d", timedelta(days=3)), ("90m", timedelta(minutes=90))]
)
def test_since_may_be_a_length_of_time(gpu_dev: GpuDev, api: FakeApi, typed: str, ago: timedelta) -> None:
    api.on("GET", "/v1/admin/audit", Reply(body={"entries": []}))
    assert "Nothing was written" in gpu_dev("admin", "audit", "--since", typed).err
    since = datetime.fromisoformat(asked(api)["since"][0])
    assert timedelta(0) <= datetime.now(UTC) - ago - since < timedelta(minutes=5)


def test_since_may_be_a_moment(gpu_dev: GpuDev, api: FakeApi) -> None:
    api.on("GET", "/v1/admin/audit", Reply(body={"entries": []}))
    assert gpu_dev("admin", "audit", "--since", "2026-03-01T12:00+02:00").code == 0
    since = datetime.fromisoformat(asked(api)["since"][0])
    assert since == datetime(2026, 3, 1, 10, tzinfo=UTC)


@pytest.mark.parametrize("typed", ["yesterday", "99999999999d", "2026-13-01"])
def test_since_must_be_a_time(gpu_dev: GpuDev, api: FakeApi, typed: str) -> None:
    result = gpu_dev("admin", "audit", "--since", typed)
    assert result.code == 2
    assert "is not a time" in result.err


@pytest.mark.parametrize("found, code", [(INTACT, 0), (BROKEN, 1)], ids=["intact", "broken"])
def test_verify_ends_with_1_if_anything_is_wrong(
    gpu_dev: GpuDev, api: FakeApi, found: AuditVerification, code: int
) -> None:
    api.on("GET", "/v1/admin/audit/verify", Reply(body=codec.encode(found)))
    result = gpu_dev("admin", "audit", "verify", "--anchor", "1:ff")
    assert (result.code, result.out) == (code, f"{format_verification(found)}\n")
    assert api.requests[-1].path == "/v1/admin/audit/verify?anchor=1%3Aff"
    written: Any = json.loads(gpu_dev("admin", "audit", "verify", "--json").out)
    assert written == codec.encode(found)


USAGE = UsageTable(
    begin=NOW - timedelta(days=30),
    end=NOW,
    by="user",
    rows=[
        UsageRow(
            key="ada",
            reservations=3,
            gpu_hours=41.25,
            early_releases=1,
            mean_wait_minutes=2.5,
            idle_share=0.2,
            cost=165.0,
        ),
        UsageRow(key="eve", reservations=1, gpu_hours=0.5, early_releases=0),
    ],
)


def test_usage_is_a_table_csv_or_json(gpu_dev: GpuDev, api: FakeApi) -> None:
    api.on("GET", "/v1/admin/usage", Reply(body=codec.encode(USAGE)))
    table = gpu_dev("admin", "usage", "--from", "2026-03-01", "--by", "user").out
    check_golden("cli/admin_usage.txt", table.rstrip("\n"))
    [asked, *_] = api.seen("GET", "/v1/admin/usage")
    assert parse_qs(urlsplit(asked.path).query) == {"from": ["2026-03-01T00:00:00"], "by": ["user"]}
    csv = gpu_dev("admin", "usage", "--csv").out
    assert csv.splitlines()[1:] == ["ada,3,41.25,2.5,0.2,1,165.0", "eve,1,0.5,,,0,"]
    assert json.loads(gpu_dev("admin", "usage", "--json").out)["rows"][1]["key"] == "eve"
