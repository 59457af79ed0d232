"""How much a test may try: little and always the same in `make test`, more and random in the long run.

The long tests run at two depths: as deep as CI has time for in `make test-long`, in full in `make test-soak`,
which sets `GPU_DEV_SOAK`.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

IS_SOAK = os.environ.get("GPU_DEV_SOAK") == "1"


def choose_depth(*, long: int, soak: int) -> int:
    """How many examples, rounds, rows or seconds a long test takes in this run."""
    return soak if IS_SOAK else long


QUICK = settings(max_examples=60, deadline=None, derandomize=True)
THOROUGH = settings(
    max_examples=choose_depth(long=300, soak=3000),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
