"""One owner for a state directory, for as long as its process lives."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from gpudev.domain.errors import Conflict


class StateLock:
    """Held from `take` to `release`; the kernel releases it when the process ends, however it ends.

    The descriptor is closed by exec, so no program that we start, the zygote among them, holds it on.
    """

    def __init__(self, state_dir: Path) -> None:
        self._state_dir = state_dir
        self._descriptor: int | None = None

    def take(self) -> None:
        self._state_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = self._state_dir / "cluster.lock"
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            raise Conflict(
                "state_dir_in_use", code="already_running", state_dir=str(self._state_dir)
            ) from None
        self._descriptor = descriptor

    def release(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
