"""Finding out that a dev server answers: by reading its SSH banner, as a user's client would.

Asking begins when the pod has a node and goes on every few hundredths of a second, ever more slowly, until it
answers; whenever the cluster has news of the pod, it begins anew. What counts is the address that users get.
Where the controllers cannot reach it, the pod's own address is taken for it, a little later.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import dataclass

from gpudev.adapters.kubernetes.config import Reach
from gpudev.adapters.kubernetes.facts import PodFacts
from gpudev.adapters.kubernetes.manifests.pod import SSH_PORT
from gpudev.domain.server import SshAddress

_FIRST_PAUSE = 0.01
_LONGEST_PAUSE = 0.5
_GROWTH = 1.15
_PATIENCE_WITH_NODE_PORT = 3.0
_READ_SECONDS = 2.0
_BANNER = b"SSH-"


@dataclass(frozen=True, slots=True)
class Addresses:
    """Where a dev server may be reached: as users do, and directly."""

    of_user: SshAddress | None
    of_pod: SshAddress | None


def addresses_of(pod: PodFacts, of_user: SshAddress | None) -> Addresses:
    return Addresses(of_user, SshAddress(pod.address, SSH_PORT) if pod.address else None)


async def wait_for_answer(reach: Reach, look: Callable[[], Addresses], news: asyncio.Event) -> None:
    """Return once it answers. `look` gives the addresses as far as they are known by now."""
    pause = _FIRST_PAUSE
    reached_pod_at: float | None = None
    clock = asyncio.get_running_loop().time
    while True:
        of_user, of_pod = _choose_asked(reach, look())
        if of_user is None and of_pod is None:
            # That there is somebody to ask will be news.
            await news.wait()
            news.clear()
            continue
        user_is_answered, pod_answers = await asyncio.gather(answers(of_user), answers(of_pod))
        if user_is_answered or (pod_answers and reach is Reach.POD):
            return
        if pod_answers:
            reached_pod_at = reached_pod_at or clock()
            if clock() - reached_pod_at > _PATIENCE_WITH_NODE_PORT:
                return
        pause = _FIRST_PAUSE if await _hear(news, pause) else min(_LONGEST_PAUSE, pause * _GROWTH)


def _choose_asked(reach: Reach, known: Addresses) -> tuple[SshAddress | None, SshAddress | None]:
    of_user = known.of_user if reach is not Reach.POD else None
    of_pod = known.of_pod if reach is not Reach.NODE else None
    return of_user, of_pod


async def _hear(news: asyncio.Event, seconds: float) -> bool:
    """Whether there is news within that time."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await news.wait()
    heard = news.is_set()
    news.clear()
    return heard


async def answers(address: SshAddress | None) -> bool:
    """Whether something there says that it speaks SSH."""
    if address is None:
        return False
    try:
        async with asyncio.timeout(_READ_SECONDS):
            reader, writer = await asyncio.open_connection(address.host, address.port)
            try:
                banner = await reader.readexactly(len(_BANNER))
            finally:
                writer.close()
                with contextlib.suppress(OSError):
                    await writer.wait_closed()
    except (OSError, TimeoutError, asyncio.IncompleteReadError):
        return False
    return banner == _BANNER
