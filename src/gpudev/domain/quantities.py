"""Amounts of CPU and memory as Kubernetes writes them: `10m`, `1.5`, `64Mi`, `2G`."""

from __future__ import annotations

import re
from fractions import Fraction

from gpudev.domain.errors import Invalid

_QUANTITY = re.compile(r"([0-9]+(?:\.[0-9]+)?)(m|[kMGTP]|[KMGTP]i)?")
_GIB = 1024**3
_FACTORS = {
    "": Fraction(1),
    "m": Fraction(1, 1000),
    **{letter: Fraction(1000**power) for power, letter in enumerate("kMGTP", start=1)},
    **{f"{letter}i": Fraction(1024**power) for power, letter in enumerate("KMGTP", start=1)},
}


def parse_quantity(text: str) -> Fraction:
    """The exact number that a quantity means."""
    found = _QUANTITY.fullmatch(text)
    if found is None:
        raise Invalid("bad_quantity", text=text, code="bad_quantity")
    number, suffix = found.groups(default="")
    return Fraction(number) * _FACTORS[suffix]


def parse_gibibytes(text: str) -> Fraction:
    return parse_quantity(text) / _GIB
