"""One's own notifications on the wire."""

from __future__ import annotations

from dataclasses import field
from typing import Annotated

from gpudev.texts import vocabulary
from gpudev.wire.message import message
from gpudev.wire.text import Text

Target = Annotated[str, Text(2000, pattern=r"^(https?://[A-Za-z0-9._:\[\]-]+([/?#][!-~]*)?)?$")]
Kind = Annotated[str, Text(200, pattern=f"^({'|'.join(vocabulary.TargetKind)})$")]
Topic = Annotated[str, Text(200, pattern=f"^({'|'.join(vocabulary.Topic)})$")]


@message
class NotificationChoice:
    url: Target | None = None
    """Where to send them; left out or null: nowhere. Only hosts that the operator allows."""
    kind: Kind = "webhook"
    """`webhook`: signed JSON with everything; `slack`: a text, as Slack takes it."""
    topics: list[Topic] = field(default_factory=list)
    """Of what: starts, warnings, ends, failures, queue. None given: of all."""


@message
class NotificationSettings:
    topics: list[str]
    """Of what one wants to hear; empty if nothing is set."""
    allowed_hosts: list[str]
    """Where notifications may be sent to here."""
    url: str | None = None
    """Where they go."""
    kind: str | None = None
    """`webhook` or `slack`."""
    secret: str | None = None
    """By which a webhook can check who sent it; told only when it is set."""


@message
class NotificationTest:
    message: str
    """That a test is on its way."""
