"""`python -m bench [--quick] [NAME...]`: run these benchmarks and write down what they found.

Without a name, all that need no cluster.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from datetime import UTC, datetime

from bench import (
    api,
    claim,
    cli,
    disks,
    failover,
    kubernetes,
    kubernetes_http,
    kubernetes_scale,
    proxy,
    scheduler,
    simulation,
)
from bench.page import PAGE, Section, describe_conditions, write_section

BENCHMARKS: dict[str, Callable[[bool], Section]] = {
    "api": api.measure,
    "claim": claim.measure,
    "cli": cli.measure,
    "disks": disks.measure,
    "failover": failover.measure,
    "kubernetes": kubernetes.measure,
    "kubernetes-http": kubernetes_http.measure,
    "kubernetes-scale": kubernetes_scale.measure,
    "proxy": proxy.measure,
    "scheduler": scheduler.measure,
    "simulation": simulation.measure,
}
WITHOUT_A_CLUSTER = ("api", "claim", "cli", "disks", "kubernetes-http", "proxy", "scheduler", "simulation")
"""Those that run if none is named."""


def main(arguments: list[str] | None = None) -> int:
    options = _parse(arguments)
    for name in options.names or WITHOUT_A_CLUSTER:
        conditions = describe_conditions(datetime.now(UTC).date())
        section = BENCHMARKS[name](options.quick)
        print(f"\n## {section.title}\n\n{section.body}")
        if not options.quick:
            write_section(section, conditions)
            print(f"\nWritten to {PAGE}.", file=sys.stderr)
    return 0


def _parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description="Run benchmarks.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one of: {', '.join(BENCHMARKS)}")
    parser.add_argument(
        "--quick", action="store_true", help="A few samples, to see that it works; nothing is written down."
    )
    options = parser.parse_args(arguments)
    if unknown := sorted(set(options.names) - set(BENCHMARKS)):
        parser.error(f'There is no benchmark "{unknown[0]}". There are: {", ".join(BENCHMARKS)}.')
    return options


if __name__ == "__main__":
    sys.exit(main())
