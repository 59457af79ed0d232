"""Where a request came from: proxies that are trusted are looked through, and nobody else is believed."""

from __future__ import annotations

from ipaddress import ip_network

import pytest

from gpudev.api.client_address import find_address

TRUSTED = (ip_network("10.0.0.0/8"), ip_network("fd00::/8"))


@pytest.mark.parametrize(
    "peer, forwarded_for, address",
    [
        pytest.param("192.0.2.1", None, "192.0.2.1", id="no-proxy"),
        pytest.param("192.0.2.1", "198.51.100.1", "192.0.2.1", id="not-believed"),
        pytest.param("10.0.0.1", None, "10.0.0.1", id="the-proxy-itself"),
        pytest.param("10.0.0.1", "198.51.100.1", "198.51.100.1", id="one-proxy"),
        pytest.param("10.0.0.1", "198.51.100.1, 10.0.0.2", "198.51.100.1", id="two-proxies"),
        pytest.param("10.0.0.1", "6.6.6.6, 198.51.100.1", "198.51.100.1", id="invented-by-the-caller"),
        pytest.param("10.0.0.1", "10.0.0.9, 10.0.0.2", "10.0.0.9", id="caller-inside"),
        pytest.param("10.0.0.1", "nonsense", "10.0.0.1", id="no-address"),
        pytest.param("10.0.0.1", "198.51.100.1, nonsense", "10.0.0.1", id="no-address-last"),
        pytest.param("10.0.0.1", " , ", "10.0.0.1", id="empty"),
        pytest.param("fd00::1", "2001:db8::5", "2001:db8::5", id="ipv6"),
        pytest.param("::ffff:10.0.0.1", "198.51.100.1", "198.51.100.1", id="ipv4-as-ipv6"),
        pytest.param("::ffff:192.0.2.1", None, "192.0.2.1", id="caller-as-ipv6"),
        pytest.param(None, "198.51.100.1", "unknown", id="unix-socket"),
    ],
)
def test_the_nearest_address_that_is_not_our_own_proxy(
    peer: str | None, forwarded_for: str | None, address: str
) -> None:
    assert find_address(peer, forwarded_for, TRUSTED) == address


def test_without_trusted_proxies_only_the_connection_counts() -> None:
    assert find_address("127.0.0.1", "198.51.100.1", ()) == "127.0.0.1"
