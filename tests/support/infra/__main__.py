"""`python -m tests.support.infra`: fetch and compile what the checks need, so that they start at once."""

from __future__ import annotations

import sys

from tests.support.infra.programs import get_helm, get_tofu

for program in (get_helm(), get_tofu()):
    sys.stdout.write(f"{program}\n")
