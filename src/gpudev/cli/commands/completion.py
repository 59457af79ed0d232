"""`gpu-dev completion`."""

from __future__ import annotations

import click

from gpudev.cli.output import examples, put
from gpudev.client.errors import Usage

_SHELLS = ("bash", "zsh", "fish")


@click.command(
    "completion",
    epilog=examples(
        "gpu-dev completion bash >> ~/.bashrc",
        "gpu-dev completion zsh >> ~/.zshrc",
        "gpu-dev completion fish > ~/.config/fish/completions/gpu-dev.fish",
    ),
)
@click.argument("shell", type=click.Choice(_SHELLS))
@click.pass_context
def command(context: click.Context, shell: str) -> None:
    """Print what makes SHELL complete commands, options, ids, types and disks.

    Ids, types and disks come from the server and are kept for ten seconds.
    """
    from click.shell_completion import get_completion_class

    kind = get_completion_class(shell)
    if kind is None:
        raise Usage(f"There is no completion for {shell}.")
    put(kind(context.find_root().command, {}, "gpu-dev", "_GPU_DEV_COMPLETE").source())
