"""What a reconciliation would do, told to an admin before it is done."""

from __future__ import annotations

from gpudev.domain.plans.reconciliation import SyncDisk, describe_change
from gpudev.texts.sentences import say
from gpudev.texts.vocabulary import DiskState
from tests.support.disk_values import make_disk
from tests.support.parts import change_disk


def test_a_difference_is_described_field_by_field() -> None:
    before = make_disk(DiskState.AVAILABLE)
    after = change_disk(before, size_gb=before.spec.size_gb + 10, is_attached=True)
    told = describe_change(SyncDisk(before, after, has_pending_snapshot=False))
    assert told.key == "disk_would_be_synced"
    assert "size_gb" in say(told)
    assert "is_attached" in say(told)
