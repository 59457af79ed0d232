"""Who one is: `gpu-dev login` and `whoami`."""

from __future__ import annotations

from dataclasses import replace

import click

from gpudev.cli.output import Output, json_option, pass_output, put
from gpudev.cli.screen import find_width


@click.command("login")
@click.option("--github-user", metavar="NAME", help="Who you are at GitHub, if the server wants to know.")
@json_option
@pass_output
def login(output: Output, *, github_user: str | None) -> None:
    """Log in again, and show as whom.

    Other commands log in by themselves. This one gets a new key also if there is one that works: after a
    change of your AWS profile, say.

    Some servers want to know who you are at GitHub. Then something is signed with an SSH key that you have
    published there; the name is remembered.
    """
    from gpudev.cli.render.data import format_json
    from gpudev.client import codec, config, session

    here = config.read_surroundings()
    if github_user:
        here = replace(here, github_user=github_user)
    with session.connect(here) as client:
        answer, target = client.log_in(), client.target
    if github_user and answer.github_user:
        config.write_github_user(answer.github_user, here)
    if output.as_json:
        shown = {name: value for name, value in codec.encode(answer).items() if name != "api_key"}
        put(format_json({**shown, "api_url": target.api_url, "environment": target.environment}))
    else:
        put(f"{answer.username} at {target.api_url} (environment {target.environment})")
        if answer.aws_arn:
            put(f"by AWS: {answer.aws_arn}")
        if answer.github_user:
            put(f"at GitHub: {answer.github_user}")


@click.command("whoami")
@json_option
@pass_output
def whoami(output: Output) -> None:
    """Show who you are, to which server, and your quotas."""
    from gpudev.cli.render.cluster import format_quotas
    from gpudev.cli.render.data import format_json
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
