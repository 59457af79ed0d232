"""Finding out that a dev server answers: by reading its SSH banner, as a user's client would.

Asking begins when the pod has an address, and goes on every few hundredths of a second, ever more slowly,
until it answers; whenever the cluster has news of the pod, it begins anew. What counts is the address that
users get. It is asked once there is somebody behind it: a node refuses a few knocks a second and
drops the others in silence, so that who knocks too early hears of the answer a second too late. Where the
controllers cannot reach the users' address, the pod's own is taken for it, a little later.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto

from gpudev.adapters.kubernetes.config import Reach
from gpudev.adapters.kubernetes.facts import PodFacts
from gpudev.adapters.kubernetes.manifests.pod import SSH_PORT
from gpudev.domain.server import SshAddress

_FIRST_PAUSE = 0.01
_LONGEST_PAUSE = 0.5
_GROWTH = 1.15
_PATIENCE_WITH_NODE_PORT = 3.0
_FIRST_CONNECT_SECONDS = 0.05
_CONNECT_GROWTH = 1.5
_POD_CONNECT_SECONDS = 0.25
"""Who is in the cluster is faster; who is not will not be heard at all."""
_READ_SECONDS = 2.0
_SECONDS_AFTER_NO = 1.0
_BANNER = b"SSH-"


class Answer(Enum):
    YES = auto()
    NO = auto()
    """Something is there, and does not speak SSH yet."""
    SILENCE = auto()
    """Nobody is there, or cannot be reached from here."""


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
    questions = _Questions(reach)
    while True:
        known = look()
        if known.of_pod is None or (known.of_user is None and reach is Reach.NODE):
            # Nothing leads to it before it has an address. That it has one will be news.
            await news.wait()
            news.clear()
            continue
        if await questions.ask(known):
            return
        pause = _FIRST_PAUSE if await _hear(news, pause) else min(_LONGEST_PAUSE, pause * _GROWTH)


class _Questions:
    """What was asked of one dev server, and what is to be asked next."""

    def __init__(self, reach: Reach) -> None:
        self._reach = reach
        self._clock = asyncio.get_running_loop().time
        self._connect_seconds = _FIRST_CONNECT_SECONDS
        self._asked_user_at = self._clock()
        self._reached_pod_at: float | None = None

    async def ask(self, known: Addresses) -> bool:
        """Whether it answers where it has to."""
        if self._reach is Reach.POD:
            return await _ask(known.of_pod, _READ_SECONDS) is Answer.YES
        if self._reach is Reach.NODE:
            return await self._ask_as_user(known.of_user)
        of_pod = await _ask(known.of_pod, _POD_CONNECT_SECONDS)
        if of_pod is Answer.YES:
            return await self._ask_as_user(known.of_user) or self._has_answered_long_enough()
        # Where a firewall says no in the name of the pod, users may still be answered.
        is_early = self._clock() - self._asked_user_at < _SECONDS_AFTER_NO
        return not (of_pod is Answer.NO and is_early) and await self._ask_as_user(known.of_user)

    async def _ask_as_user(self, address: SshAddress | None) -> bool:
        self._asked_user_at = self._clock()
        answer = await _ask(address, self._connect_seconds)
        if answer is Answer.SILENCE:
            self._connect_seconds = min(_READ_SECONDS, self._connect_seconds * _CONNECT_GROWTH)
        return answer is Answer.YES

    def _has_answered_long_enough(self) -> bool:
        now = self._clock()
        if self._reached_pod_at is None:
            self._reached_pod_at = now
        return now - self._reached_pod_at > _PATIENCE_WITH_NODE_PORT


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
    return await _ask(address, _READ_SECONDS) is Answer.YES


async def _ask(address: SshAddress | None, connect_seconds: float) -> Answer:
    if address is None:
        return Answer.SILENCE
    try:
        async with asyncio.timeout(connect_seconds):
            reader, writer = await asyncio.open_connection(address.host, address.port)
    except ConnectionRefusedError:
        return Answer.NO
    except (OSError, TimeoutError):
        return Answer.SILENCE
    try:
        async with asyncio.timeout(_READ_SECONDS):
            is_ssh = await reader.readexactly(len(_BANNER)) == _BANNER
    except (OSError, TimeoutError, asyncio.IncompleteReadError):
        return Answer.NO
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()
    return Answer.YES if is_ssh else Answer.NO
