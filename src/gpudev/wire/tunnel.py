"""The tunnel of an SSH connection: a WebSocket on the SSH proxy.

A client asks for `GET /v1/jobs/{id}/ssh?node=RANK` with its API key and an upgrade to a WebSocket. Binary
messages are the bytes of the connection, in both directions, cut anywhere. A WebSocket cannot be closed in
one direction, so whoever has no more to send says so by the text message `END_OF_STREAM`, and may be sent to
after that.
"""

from __future__ import annotations

SUBPROTOCOL = "ssh.gpu-dev.v1"
"""What both sides must name, so that nobody takes another WebSocket for a tunnel."""

END_OF_STREAM = "end-of-stream"

NORMAL_END = 1000
GOING_AWAY = 1001
NO_SERVER = 4502
"""The dev server did not answer. The reason is a sentence, as with the others from 4000 on."""
IDLE = 4408
ENDED = 4410
"""The reservation is over, or its user may come in no longer."""


def tunnel_path(reservation: str, rank: int) -> str:
    """`reservation` is quoted already."""
    return f"/v1/jobs/{reservation}/ssh?node={rank}"
