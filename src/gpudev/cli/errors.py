"""What the user reads when something fails, and the exit code that goes with it: the one table."""

from __future__ import annotations

import json

import click

from gpudev.cli.output import say
from gpudev.cli.spelling import spell
from gpudev.client import errors

ERROR = 1
INTERRUPTED = 130

EXIT_CODES: dict[type[errors.ClientError], int] = {
    errors.Usage: 2,
    errors.NotFound: 3,
    errors.NotAllowed: 4,
    errors.LoginFailed: 4,
    errors.QuotaExceeded: 5,
    errors.TooManyRequests: 5,
    errors.NoCapacity: 5,
    errors.TimedOut: 6,
    errors.Unreachable: 7,
    errors.ConnectionLost: 7,
    errors.CommandFailed: ERROR,
    errors.Interrupted: INTERRUPTED,
}


def exit_code_of(error: errors.ClientError) -> int:
    return EXIT_CODES.get(type(error), ERROR)


def report_error(error: errors.ClientError, *, as_json: bool) -> int:
    if as_json:
        content = {"error": error.message, "code": error.code, "hint": error.hint}
        say(json.dumps(content))
    else:
        say(f"Error: {error.message}")
        if error.hint:
            say(spell(f"Hint: {error.hint}"))
    return exit_code_of(error)


def report_usage(error: click.ClickException, *, as_json: bool) -> int:
    """What click found wrong with the command line."""
    if as_json:
        content = {"error": error.format_message(), "code": "usage", "hint": ""}
        say(json.dumps(content))
    else:
        error.show()
    return error.exit_code
