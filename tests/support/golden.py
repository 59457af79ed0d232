"""Text compared with a file that people have read. `UPDATE_GOLDEN=1` writes the files anew."""

from __future__ import annotations

import os
from pathlib import Path

GOLDEN = Path(__file__).parent.parent / "golden"


def check_golden(name: str, text: str) -> None:
    check_file(GOLDEN / name, f"{text}\n")


def check_file(file: Path, text: str) -> None:
    if os.environ.get("UPDATE_GOLDEN"):
        file.write_text(text, encoding="utf-8")
    kept = file.read_text(encoding="utf-8")
    assert text == kept, f"UPDATE_GOLDEN=1 makes it anew:\n{text}"
