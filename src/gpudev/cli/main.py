"""The entry point: which commands there are, and how every run of one ends."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from typing import TextIO

import click

from gpudev import __version__
from gpudev.cli.errors import INTERRUPTED, report_error, report_usage
from gpudev.cli.lazy import Entry, LazyGroup
from gpudev.cli.output import Output, say
from gpudev.client.errors import ClientError

COMMANDS = {
    "reserve": Entry("reserve", "Ask for GPUs and wait until they are yours."),
    "list": Entry("reservations:list_reservations", "List your reservations."),
    "show": Entry("reservations:show", "Show one reservation."),
    "why": Entry("reservations:why", "Explain why a reservation waits, was slow, ended or failed."),
    "logs": Entry("logs", "Show what a dev server says of itself."),
    "connect": Entry("connect:connect", "Open a shell on a dev server (also: ssh)."),
    "open": Entry("open", "Open VS Code or Cursor on a dev server."),
    "cp": Entry("connect:cp", "Copy files to a dev server, or from it."),
    "submit": Entry("submit", "Run a command on GPUs, and have its results back."),
    "wait": Entry("reservation_actions:wait", "Wait until a reservation is active, or over."),
    "extend": Entry("reservation_actions:extend", "Give a reservation more time."),
    "edit": Entry("reservation_actions:edit", "Change a reservation that is active."),
    "keep": Entry("reservation_actions:keep", "Keep a server that nobody uses at the moment."),
    "stop": Entry("reservation_actions:stop", "End a dev server for now; its time stands still."),
    "start": Entry("reserve:start", "Start a stopped reservation again, perhaps with other GPUs."),
    "cancel": Entry("reservation_actions:cancel", "End reservations and give their GPUs back."),
    "disk": Entry("disk", "Keep your files: list, make, copy and delete disks."),
    "avail": Entry("cluster:avail", "Show which GPUs are free (also: availability)."),
    "queue": Entry("cluster:queue", "Show who waits for GPUs, and until when."),
    "status": Entry("cluster:status", "Show the whole cluster at a glance."),
    "notify": Entry("notify", "Be told elsewhere what happens to your reservations."),
    "setup": Entry("setup:setup", "Say where the server is, and try it."),
    "doctor": Entry("setup:doctor", "Check address, clock, login, SSH and versions, with a fix for each."),
    "config": Entry("config", "See and change what is configured."),
    "completion": Entry("completion", "Complete commands, ids, types and disks by Tab."),
    "login": Entry("login:login", "Log in again, and show as whom."),
    "whoami": Entry("login:whoami", "Show who you are, to which server, and your quotas."),
    "ssh-proxy": Entry("ssh_proxy", "Lead ssh to a dev server (for ProxyCommand)."),
    "up": Entry("one_machine:up", "Run gpu-dev on this machine."),
    "down": Entry("one_machine:down", "Stop gpu-dev on this machine."),
    "admin": Entry("admin", "What admins do: users, reports, the audit log, disks."),
    "server": Entry("server", "Run one part of the server."),
}
ALIASES = {"ssh": "connect", "availability": "avail"}

_SHOW_WARNING = warnings.showwarning

EPILOG = (
    "Start with: gpu-dev up, or gpu-dev setup for a server elsewhere; then gpu-dev reserve. "
    "Help for one command: gpu-dev COMMAND --help."
)

root = LazyGroup(
    COMMANDS,
    ALIASES,
    name="gpu-dev",
    help="Borrow GPUs for some hours: a machine to SSH into, or an honest place in a queue.",
    epilog=EPILOG,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
click.version_option(__version__, "-V", "--version", prog_name="gpu-dev")(root)


def main() -> None:
    sys.exit(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:
    """Run one command line; returns the exit code."""
    output = Output()
    warnings.showwarning = _say_warning
    try:
        code = root.main(list(arguments), prog_name="gpu-dev", standalone_mode=False, obj=output)
    except ClientError as error:
        return report_error(error, as_json=output.as_json)
    except click.ClickException as error:
        return report_usage(error, as_json=output.as_json)
    except ModuleNotFoundError as error:
        return report_error(_missing(error), as_json=output.as_json)
    except click.Abort:
        return INTERRUPTED
    return code if isinstance(code, int) else 0


def _say_warning(  # noqa: PLR0917 - as Python calls it
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """What concerns the user in the form of our other remarks, the rest as Python has it."""
    from gpudev.cli.program_name import spell
    from gpudev.client.versions import OutdatedClient

    if issubclass(category, OutdatedClient):
        say(spell(f"Warning: {message}"))
    else:
        _SHOW_WARNING(message, category, filename, lineno, file, line)


def _missing(error: ModuleNotFoundError) -> ClientError:
    """The light client lacks what only the server needs; a missing module of our own is a defect."""
    if error.name is None or error.name.split(".")[0] == "gpudev":
        raise error
    from gpudev.cli.commands.one_machine import ONE_MACHINE_PACKAGES

    part = "local" if error.name.split(".")[0] in ONE_MACHINE_PACKAGES else "server"
    return ClientError(
        f"This command needs the {part} part of gpu-dev ({error.name} is not installed).",
        hint=f"Install it with: pip install 'gpu-dev[{part}]'",
        code="server_not_installed",
    )


if __name__ == "__main__":
    main()
