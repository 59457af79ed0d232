"""Whether a program of the cluster says that it is well, over plain HTTP."""

from __future__ import annotations

import http.client
from ipaddress import IPv4Address


def answers_ok(address: IPv4Address, port: int, path: str) -> bool:
    connection = http.client.HTTPConnection(str(address), port, timeout=1)
    try:
        connection.request("GET", path)
        return connection.getresponse().status == http.client.OK
    except OSError:
        return False
    finally:
        connection.close()
