"""The headers by which server and client tell each other what they are."""

from __future__ import annotations

VERSION_HEADER = "X-GPU-Dev-Version"
CLIENT_HEADER = "X-GPU-Dev-Client"
"""By which a client tells its own."""
OLDEST_CLIENT_HEADER = "X-GPU-Dev-Oldest-Client"
"""By which the server tells the oldest client that it still understands."""
TIME_ZONE_HEADER = "X-GPU-Dev-Time-Zone"
"""By which a client tells the zone of its reader, an IANA name: sentences have their times in it."""

OLDEST_CLIENT = "0.4.0"
"""Of those that say their version. The 0.3 client does not, and is always served."""
