"""What the user reads when something fails, and the exit code that goes with it: the one table."""

from __future__ import annotations

import click

from gpudev.cli.output import say
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
        _say_json(error.message, error.code, error.hint)
    else:
        from gpudev.cli.render.table import fold
        from gpudev.cli.screen import find_width_of_errors

        say(fold(error.message, find_width_of_errors(), "Error: "))
        if error.hint:
            from gpudev.cli.program_name import spell

            say(spell(f"Hint: {error.hint}"))
    return exit_code_of(error)


def report_usage(error: click.ClickException, *, as_json: bool) -> int:
    """What click found wrong with the command line."""
    if as_json:
        _say_json(error.format_message(), "usage", "")
    else:
        import io

        shown = io.StringIO()
        error.show(shown)
        say(shown.getvalue().rstrip("\n"))
    return error.exit_code


def _say_json(message: str, code: str, hint: str) -> None:
    import json

    say(json.dumps({"error": message, "code": code, "hint": hint}))
