"""Why a message became a dead letter without having been tried."""

from __future__ import annotations

from gpudev.texts.template import Text

TEXTS = {
    "item_not_found": Text("There is no {kind} {key}."),
    "notification_without_topic": Text("It names neither an event nor a user."),
}
