"""`gpu-dev doctor`."""

from __future__ import annotations

import click

from gpudev.cli.errors import ERROR
from gpudev.cli.output import Output, json_option, pass_output, put


@click.command("doctor")
@json_option
@pass_output
@click.pass_context
def command(context: click.Context, output: Output) -> None:
    """Check whatever a reservation needs, and say how to mend it.

    SSH and its keys, the keys at GitHub, the server's address, the clock, the versions and the login.
    Nothing is changed, except that a login leaves its key. Exit code 1 if something is not in order.
    """
    from gpudev.cli.checkup import State, examine
    from gpudev.cli.render.data import format_json
    from gpudev.cli.render.findings import encode_findings, format_finding
    from gpudev.cli.spelling import spell
    from gpudev.client.config import read_surroundings

    findings = []
    for finding in examine(read_surroundings()):
        findings.append(finding)
        if not output.as_json:
            put(spell(format_finding(finding)))
    if output.as_json:
        put(format_json(encode_findings(findings)))
    context.exit(ERROR if any(finding.state is State.BAD for finding in findings) else 0)
