"""Webhooks: notifications that were not delivered, and the one that only tests."""

from __future__ import annotations

from gpudev.texts.template import Text

TEXTS = {
    "notification_test": Text("This is a test of your notifications from gpu-dev."),
    "webhook_address_refused": Text("{cause}"),
    "webhook_silent": Text("{host} does not answer: {error}"),
    "webhook_not_askable": Text("{host} cannot be asked: {error}"),
    "webhook_answered": Text("{host} answered {status}."),
}
