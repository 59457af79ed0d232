"""`gpu-dev queue`."""

from __future__ import annotations

import click

from gpudev.cli.output import Output, format_options, pass_output, put, say


@click.command("queue")
@click.option("-t", "--gpu-type", metavar="TYPE", help="Only those who wait for this type.")
@click.option("--accuracy", is_flag=True, help="How far the forecasts of the last four weeks were off.")
@format_options
@pass_output
def command(output: Output, *, gpu_type: str | None, accuracy: bool) -> None:
    """Show who waits for which GPUs, in the order in which they came.

    A start is a promise: it may come earlier, and a small request may start before a large one that came
    first, where that makes nobody late. Yours have their id and name; why they wait is told by gpu-dev show
    ID. A start that is not known yet depends on GPUs that come back at no known time.
    """
    if accuracy:
        _show_accuracy(output)
        return
    from gpudev.cli.render.data import format_json, format_yaml
    from gpudev.cli.render.queue import format_own_names, format_queue, only_type
    from gpudev.cli.render.times import read_now
    from gpudev.client import session

    with session.connect() as client:
        answer = client.queue()
    chosen = only_type(answer, gpu_type.lower()) if gpu_type else answer
    if output.format == "json":
        put(format_json(chosen))
    elif output.format == "yaml":
        put(format_yaml(chosen))
    elif not chosen.total:
        say("Nobody waits.")
    elif output.format == "name":
        put(format_own_names(chosen))
    else:
        put(format_queue(chosen, read_now()))


def _show_accuracy(output: Output) -> None:
    from gpudev.cli.render.data import format_json, format_yaml
    from gpudev.cli.render.forecasts import format_accuracy
    from gpudev.client import session

    with session.connect() as client:
        answer = client.accuracy()
    if output.format == "json":
        put(format_json(answer))
    elif output.format == "yaml":
        put(format_yaml(answer))
    elif output.format == "name":
        put("\n".join(answer.accuracy))
    elif not answer.accuracy:
        say("Nobody has waited and started yet.")
    else:
        put(format_accuracy(answer))
