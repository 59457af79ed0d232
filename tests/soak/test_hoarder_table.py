"""What one hoarder costs the others, as a table: seeds, loads, sizes, lengths, fleets and windows.

It takes minutes, and prints one line for each cell (`pytest -s`). See
`docs/decisions/0046-long-reservations-have-a-share.md`.
"""

from __future__ import annotations

import sys
from dataclasses import replace

import pytest

from gpudev.domain.quota import DEFAULT_QUOTA
from tests.support.hoarder import Hoard, Weeks, compare, list_ordinary, measure_waits, replay

pytestmark = pytest.mark.soak

HOARDS = [Hoard(8), Hoard(1), Hoard(8, is_persistent=False), Hoard(1, is_persistent=False), Hoard(8, hours=4)]


@pytest.mark.parametrize("nodes", [13, 4])
@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("load", [1.0, 1.2])
def test_ordinary_users_are_never_rejected_whatever_one_hoarder_does(
    load: float, seed: int, nodes: int, capsys: pytest.CaptureFixture[str]
) -> None:
    weeks = Weeks(load, seed, nodes)
    without = measure_waits(replay(replace(weeks, quota=replace(DEFAULT_QUOTA, long_share=None))))
    alone = measure_waits(replay(weeks))
    lines = [
        f"nobody hoards: mean wait x{alone.mean / without.mean:.2f}, p95 x{alone.long / without.long:.2f}"
    ]
    rejected = [run for run in replay(weeks) if run.is_rejected]
    for hoard in HOARDS:
        week, all_weeks = compare(weeks, hoard, days=7), compare(weeks, hoard)
        rejected += [run for run in list_ordinary(replay(weeks, hoard)) if run.is_rejected]
        lines.append(
            f"{hoard}: mean x{all_weeks.mean:.2f}, p95 x{all_weeks.long:.2f}; "
            f"first week mean x{week.mean:.2f}, p95 x{week.long:.2f}"
        )
    with capsys.disabled():
        sys.stdout.write(
            f"\nload {load}, seed {seed}, {nodes} nodes\n" + "".join(f"  {one}\n" for one in lines)
        )
    assert rejected == []
