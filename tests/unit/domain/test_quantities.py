"""Amounts as Kubernetes writes them."""

from __future__ import annotations

from fractions import Fraction

import pytest

from gpudev.domain.catalogue import parse_gibibytes, parse_quantity
from gpudev.domain.errors import Invalid


@pytest.mark.parametrize(
    "text, value",
    [
        ("1", Fraction(1)),
        ("10m", Fraction(1, 100)),
        ("1.5", Fraction(3, 2)),
        ("64Mi", Fraction(64 * 1024**2)),
        ("2k", Fraction(2000)),
        ("1G", Fraction(10**9)),
    ],
)
def test_a_quantity_is_read_exactly(text: str, value: Fraction) -> None:
    assert parse_quantity(text) == value


def test_memory_is_counted_in_gibibytes() -> None:
    assert parse_gibibytes("64Mi") == Fraction(1, 16)


@pytest.mark.parametrize("text", ["", "m", "1 Gi", "-1", "1e3", "1Ki2", "0x10"])
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(Invalid):
        parse_quantity(text)
