"""Removing leftover trees in the background.

Each tree has a thread of its own, so that one that is huge or cannot be removed does not delay the others.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from gpudev.adapters.local.trees.removal import remove_tree
from gpudev.faults import FAULTS, Faults

THREADS = 16


class Sweeper:
    def __init__(self, list_leftovers: Callable[[], Iterable[Path]], faults: Faults = FAULTS) -> None:
        self._list_leftovers = list_leftovers
        self._faults = faults
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="sweeper")
        self._tasks: dict[Path, asyncio.Task[None]] = {}

    def sweep(self) -> None:
        """Begin to remove what is left over now. What fails is tried again until it is gone."""
        for tree in self._list_leftovers():
            if tree not in self._tasks:
                self._tasks[tree] = asyncio.create_task(self._remove(tree))

    async def close(self) -> None:
        """Stop: what is left is swept at the next start."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _remove(self, tree: Path) -> None:
        try:
            await self._faults.persist("leftover_trees", lambda: self._try_to_remove(tree), tree.name)
        finally:
            del self._tasks[tree]

    async def _try_to_remove(self, tree: Path) -> None:
        with contextlib.suppress(FileNotFoundError):
            await asyncio.get_running_loop().run_in_executor(self._threads, remove_tree, tree)
