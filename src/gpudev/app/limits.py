"""Limits on how often somebody may ask, kept in memory: each process has its own count."""

from __future__ import annotations

import ipaddress
from collections import OrderedDict
from collections.abc import Hashable

from gpudev.domain.errors import TooManyRequests
from gpudev.domain.limits import NO_WAIT, Bucket, Rate, take
from gpudev.ports.clock import Clock

MAX_BUCKETS = 10_000
"""More than there are callers at a time. Who is forgotten starts with a full bucket."""

_IPV6_PREFIX = 64
"""What one customer has: a limit for each address in it would be no limit."""


class Limiter:
    """A token bucket for each key. `refusal` is the key of the text that is told when one is empty."""

    def __init__(self, rate: Rate, clock: Clock, refusal: str) -> None:
        self._rate = rate
        self._clock = clock
        self._refusal = refusal
        self._buckets: OrderedDict[Hashable, Bucket] = OrderedDict()

    def is_exhausted(self, key: Hashable) -> bool:
        """Whether the key has none left now; nothing is taken."""
        if self._rate.is_unlimited or key not in self._buckets:
            return False
        return take(self._buckets[key], self._rate, self._clock.now())[1] > NO_WAIT

    def take(self, key: Hashable) -> None:
        """Raises `TooManyRequests` when the key has none left."""
        if self._rate.is_unlimited:
            return
        bucket, wait = take(self._buckets.get(key), self._rate, self._clock.now())
        self._buckets[key] = bucket
        self._buckets.move_to_end(key)
        if len(self._buckets) > MAX_BUCKETS:
            self._buckets.popitem(last=False)
        if wait > NO_WAIT:
            raise TooManyRequests(self._refusal, retry_after=wait)


def origin_of(address: str) -> str:
    """What failures are counted for: an IPv4 address, or the IPv6 network that one customer has."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return address
    if isinstance(parsed, ipaddress.IPv4Address):
        return address
    if parsed.ipv4_mapped:
        return str(parsed.ipv4_mapped)
    return str(ipaddress.ip_network((parsed, _IPV6_PREFIX), strict=False))
