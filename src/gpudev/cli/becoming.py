"""Becoming another program, so that signals, the terminal and the exit code are that program's own."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import NoReturn

from gpudev.client.errors import ClientError


def become_openssh(words: Sequence[str]) -> NoReturn:
    """`ssh` or `scp`, from the user's PATH."""
    sys.stdout.flush()
    sys.stderr.flush()
    try:
        os.execvp(words[0], list(words))  # noqa: S606 - no shell is wanted between us and it
    except FileNotFoundError as error:
        hint = "Install the OpenSSH client."
        raise ClientError(f"There is no {words[0]} on this machine.", hint=hint) from error
