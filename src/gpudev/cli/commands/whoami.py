"""`gpu-dev whoami`."""

from __future__ import annotations

import click

from gpudev.cli.output import Output, json_option, pass_output, put
from gpudev.cli.screen import find_width


@click.command("whoami")
@json_option
@pass_output
def command(output: Output) -> None:
    """Show who you are, to which server, and your quotas."""
    from gpudev.cli.render.data import format_json
    from gpudev.cli.render.quotas import format_quotas
    from gpudev.client import codec, session

    with session.connect() as client:
        user, target = client.whoami(), client.target
    if output.as_json:
        where = {"api_url": target.api_url, "environment": target.environment}
        put(format_json({**codec.encode(user), **where}))
    else:
        put(f"{user.username} at {target.api_url} (environment {target.environment})")
        if user.aws_arn:
            put(f"by AWS: {user.aws_arn}")
        if user.quotas:
            put("")
            put(format_quotas(user.quotas, find_width()))
