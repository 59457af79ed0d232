"""What is said of a text that means no reservation."""

from __future__ import annotations

import pytest

from gpudev.app.reservations.lookup import choose_meant
from gpudev.domain.errors import NotFound


@pytest.mark.parametrize("text, is_too_short", [("7f3", True), ("7f3a", False)])
def test_an_id_that_was_cut_too_short_is_told_so(text: str, *, is_too_short: bool) -> None:
    with pytest.raises(NotFound, match="was not found") as refused:
        choose_meant(text, ())
    assert refused.value.hint.startswith("An id takes 4 characters or more.") is is_too_short
    assert refused.value.hint.endswith("Yours are listed by: gpu-dev list --all")
