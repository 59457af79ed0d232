"""Where a request came from, seen through the proxies that are trusted."""

from __future__ import annotations

import ipaddress

from gpudev.app.application import TrustedProxies

UNKNOWN = "unknown"
"""A socket without an address, for example."""


def find_address(peer: str | None, forwarded_for: str | None, trusted: TrustedProxies) -> str:
    """The nearest address that is not one of our own proxies.

    `X-Forwarded-For` is believed from a trusted proxy alone, and read from its end: each proxy appends whom
    it was called by, and what comes before the last one that is trusted may be invented.
    """
    address = _plain(peer) if peer else UNKNOWN
    hops = [hop.strip() for hop in (forwarded_for or "").split(",") if hop.strip()]
    while hops and is_trusted(address, trusted):
        hop = hops.pop()
        if not _is_address(hop):
            break
        address = _plain(hop)
    return address


def _plain(address: str) -> str:
    """An IPv4 address also where a socket for both kinds shows it as an IPv6 one."""
    return address.removeprefix("::ffff:") if "." in address else address


def is_trusted(address: str, trusted: TrustedProxies) -> bool:
    return _is_address(address) and any(ipaddress.ip_address(address) in network for network in trusted)


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True
