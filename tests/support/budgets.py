"""How much Hypothesis may try: little and always the same in `make test`, more and random in the long run."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

QUICK = settings(max_examples=60, deadline=None, derandomize=True)
THOROUGH = settings(max_examples=3000, deadline=None, suppress_health_check=[HealthCheck.too_slow])
