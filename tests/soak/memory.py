"""How much memory a process takes."""

from __future__ import annotations

from pathlib import Path


def read_memory_mb(pid: int) -> float:
    fields = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in fields if line.startswith("VmRSS")) / 1024
