"""One user of a cluster at a time: two test runs would take each other's cluster away."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager

from tests.support.kubernetes.cache import cache_folder
from tests.support.kubernetes.processes import ClusterFailed


@contextmanager
def locked(name: str) -> Iterator[None]:
    """Hold the cluster of this name; it is let go when this process ends, however it does."""
    with (cache_folder() / f"{name}.lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ClusterFailed(f"Another process uses cluster {name}; wait until it has ended.") from None
        yield
