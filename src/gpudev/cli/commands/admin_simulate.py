"""`gpu-dev admin simulate`."""

from __future__ import annotations

from pathlib import Path

import click

from gpudev.cli.output import Output, json_option, pass_output, put, say


@click.command("simulate")
@click.option("--nodes", type=click.IntRange(1, 2000), default=8, show_default=True, help="How many nodes.")
@click.option(
    "--gpus-per-node", type=click.IntRange(1, 64), default=8, show_default=True, help="GPUs of each."
)
@click.option("--weeks", type=click.IntRange(1, 52), default=4, show_default=True, help="How long.")
@click.option("--seed", type=int, default=1, show_default=True, help="Another one, other weeks.")
@click.option(
    "--load",
    type=click.FloatRange(0.01, 10),
    default=1.2,
    show_default=True,
    help="Asked for, of all there is.",
)
@click.option("--trace", "trace_file", type=click.Path(path_type=Path), help="Replay a file of requests.")
@click.option(
    "--recorded", "gpu_type", metavar="TYPE", help="Replay what was asked of a type, from the database."
)
@click.option("--policy", type=click.Path(path_type=Path), help="Share by this policy file.")
@click.option("--write-trace", type=click.Path(path_type=Path), help="Keep the requests in a file.")
@click.option("--svg", type=click.Path(path_type=Path), help="Draw the waits into this file.")
@json_option
@pass_output
def command(
    output: Output,
    /,
    *,
    nodes: int,
    gpus_per_node: int,
    weeks: int,
    seed: int,
    load: float,
    trace_file: Path | None,
    gpu_type: str | None,
    policy: Path | None,
    write_trace: Path | None,
    svg: Path | None,
) -> None:
    """Replay weeks of requests through the queue's own rules, and compare with first come, first served.

    The weeks are made up by a seed, read from a file, or those that the database has. Nothing is changed.
    """
    import json

    from gpudev.bootstrap import Failure
    from gpudev.bootstrap import simulation as simulated

    choice = simulated.Choice(
        nodes=nodes,
        gpus_per_node=gpus_per_node,
        gpu_type=gpu_type or "",
        weeks=weeks,
        seed=seed,
        load=load,
        trace_file=trace_file,
        is_recorded=gpu_type is not None,
        policy_file=policy,
        written_to=write_trace,
    )
    try:
        found = simulated.run_simulation(choice)
    except (Failure, OSError) as error:
        raise click.ClickException(_describe(error)) from error
    if svg is not None:
        svg.write_text(simulated.draw_waits(found), encoding="utf-8")
        say(f"Drawn into {svg}.")
    put(
        json.dumps(simulated.as_data(found), indent=2) if output.as_json else simulated.format_findings(found)
    )


def _describe(error: Exception) -> str:
    hint = getattr(error, "hint", "")
    return f"{error} {hint}".rstrip()
