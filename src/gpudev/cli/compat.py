"""The decorator `override` for Python 3.11, which has none; the client needs nothing else of its kind."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from typing_extensions import override
else:
    Method = TypeVar("Method")

    def override(method: Method) -> Method:
        return method


__all__ = ["override"]
