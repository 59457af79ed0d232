"""Metrics that several processes share, when one of them has ended."""

from __future__ import annotations

from pathlib import Path

from gpudev.bootstrap.metrics import forget_process


def test_what_described_an_ended_process_goes_and_what_it_counted_stays(tmp_path: Path) -> None:
    for name in ("gauge_liveall_7.db", "gauge_livesum_7.db", "counter_7.db", "gauge_liveall_8.db"):
        (tmp_path / name).touch()
    forget_process(7, tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["counter_7.db", "gauge_liveall_8.db"]
