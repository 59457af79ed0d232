"""The fields of SSH's binary messages, read one after the other."""

from __future__ import annotations

import struct


class Fields:
    """`struct.error` where the message is too short, or too long at its end."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def take(self, count: int) -> bytes:
        taken = self._data[self._at : self._at + count]
        if len(taken) != count:
            raise struct.error("too short")
        self._at += count
        return taken

    def number(self) -> int:
        (value,) = struct.unpack(">I", self.take(4))
        return int(value)

    def text(self) -> bytes:
        return self.take(self.number())

    def big_number(self) -> int:
        """Never negative: what keys and signatures hold is not."""
        return int.from_bytes(self.text())

    def expect_end(self) -> None:
        if self._at != len(self._data):
            raise struct.error("too long")
