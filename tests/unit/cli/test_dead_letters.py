"""`gpu-dev admin dead-letters`: what it asks for and what it prints."""

from __future__ import annotations

import json
from datetime import UTC

import pytest

from gpudev.cli.render.admin import format_dead_letters
from gpudev.cli.render.times import Now
from gpudev.client import codec
from gpudev.wire.admin import DeadLetterChanged, DeadLetterDetail, DeadLetterList
from tests.support.fake_api import FakeApi, Reply
from tests.support.golden import check_golden
from tests.support.wire_values import NOW
from tests.unit.cli.conftest import GpuDev

STRANGE = DeadLetterDetail(
    letter_id="gpu_reservations-12",
    queue="gpu_reservations",
    message='{"foo": 1}',
    error="It has no reservation_id that is a UUID.",
    died_at=NOW,
)
OLD = DeadLetterDetail(
    letter_id="disk_operations-3", queue="disk_operations", message='{"disk_id": "7"}', error="", died_at=NOW
)


def test_dead_letters_as_a_table() -> None:
    check_golden("cli/admin_dead_letters.txt", format_dead_letters([STRANGE, OLD], Now(NOW, UTC)))


def test_none_are_told_in_words() -> None:
    assert format_dead_letters([], Now(NOW, UTC)) == "There are no dead letters."


@pytest.mark.parametrize("words", [(), ("retry",), ("drop",)], ids=lambda words: "-".join(words) or "list")
def test_help(gpu_dev: GpuDev, words: tuple[str, ...]) -> None:
    result = gpu_dev("admin", "dead-letters", *words, "-h")
    assert result.code == 0
    check_golden(f"cli/help_{'_'.join(('admin_dead_letters', *words))}.txt", result.out.rstrip("\n"))


def test_dead_letters_are_listed_in_every_form(gpu_dev: GpuDev, api: FakeApi) -> None:
    listed = DeadLetterList(dead_letters=[STRANGE, OLD])
    api.on("GET", "/v1/admin/dead-letters", Reply(body=codec.encode(listed)))
    assert "no reservation_id" in gpu_dev("admin", "dead-letters").out
    assert json.loads(gpu_dev("admin", "dead-letters", "--json").out) == codec.encode(listed)
    assert gpu_dev("admin", "dead-letters", "-o", "name").out == "gpu_reservations-12\ndisk_operations-3\n"


@pytest.mark.parametrize("verb", ["retry", "drop"])
def test_one_is_sent_again_or_deleted(gpu_dev: GpuDev, api: FakeApi, verb: str) -> None:
    changed = DeadLetterChanged(letter_id="disk_operations-3", message="Done.")
    api.on("POST", f"/v1/admin/dead-letters/disk_operations-3/{verb}", Reply(body=codec.encode(changed)))
    assert gpu_dev("admin", "dead-letters", verb, "disk_operations-3").out == "Done.\n"
    asked = json.loads(gpu_dev("admin", "dead-letters", verb, "disk_operations-3", "--json").out)
    assert asked == codec.encode(changed)


def test_an_unknown_one_is_not_found(gpu_dev: GpuDev, api: FakeApi) -> None:
    refused = {"detail": 'There is no dead letter "x".', "code": "not_found", "hint": "See them."}
    api.on("POST", "/v1/admin/dead-letters/x/drop", Reply(404, refused))
    result = gpu_dev("admin", "dead-letters", "drop", "x")
    assert (result.code, "no dead letter" in result.err) == (3, True)
