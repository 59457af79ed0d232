"""The headers by which the server tells its version, and the oldest client that it still understands."""

from __future__ import annotations

VERSION_HEADER = "X-GPU-Dev-Version"
CLIENT_HEADER = "X-GPU-Dev-Client"
"""By which a client tells its own."""
OLDEST_CLIENT_HEADER = "X-GPU-Dev-Oldest-Client"

OLDEST_CLIENT = "0.4.0"
"""Of those that say their version. The 0.3 client does not, and is always served."""
