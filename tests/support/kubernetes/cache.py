"""The folder of what takes long to make, programs and images: outside the checkout, keyed by version."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import mkdtemp


def cache_folder(part: str = "kubernetes") -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    folder = Path(base, "gpu-dev", part)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@contextmanager
def unfinished(result: Path) -> Iterator[Path]:
    """A folder to work in, and the place in it of what becomes `result` when all has gone well.

    Whoever is interrupted leaves no half-made result; two who make the same both succeed.
    """
    result.parent.mkdir(parents=True, exist_ok=True)
    folder = Path(mkdtemp(prefix=f".{result.name}-", dir=result.parent))
    try:
        made = folder / result.name
        yield made
        made.rename(result)
    finally:
        shutil.rmtree(folder)
