"""`gpu-dev login`."""

from __future__ import annotations

import click

from gpudev.cli.output import Output, json_option, pass_output, put


@click.command("login")
@json_option
@pass_output
def command(output: Output) -> None:
    """Log in again, and show as whom.

    Other commands log in by themselves. This one gets a new key also if there is one that works: after a
    change of your AWS profile, say.
    """
    from gpudev.cli.render.data import format_json
    from gpudev.client import codec, session

    with session.connect() as client:
        answer, target = client.log_in(), client.target
    if output.as_json:
        shown = {name: value for name, value in codec.encode(answer).items() if name != "api_key"}
        put(format_json({**shown, "api_url": target.api_url, "environment": target.environment}))
    else:
        put(f"{answer.username} at {target.api_url} (environment {target.environment})")
        if answer.aws_arn:
            put(f"by AWS: {answer.aws_arn}")
