"""`gpu-dev config`: settings of this machine's user."""

from __future__ import annotations

from gpudev.cli.lazy import Entry, LazyGroup

command = LazyGroup(
    {
        "ssh-include": Entry(
            "gpudev.cli.commands.config_ssh_include", "Let plain ssh know your dev servers."
        ),
    },
    {},
    name="config",
    help="Settings of yours on this machine.",
)
