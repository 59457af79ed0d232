"""Keep a cluster between test runs: `python -m tests.support.kubernetes build|up|down|status`."""

from __future__ import annotations

import argparse
import sys

from tests.support.kubernetes.cluster import NETWORKS, Cluster, prepare
from tests.support.kubernetes.lock import locked
from tests.support.kubernetes.processes import ClusterFailed, list_processes


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.support.kubernetes", description=__doc__)
    parser.add_argument("command", choices=("build", "up", "down", "status"))
    parser.add_argument("--name", choices=NETWORKS, default="dev", help="which cluster (default: dev)")
    chosen = parser.parse_args()
    cluster = Cluster(chosen.name)
    try:
        return _COMMANDS[chosen.command](cluster)
    except ClusterFailed as failure:
        sys.stderr.write(f"{failure}\n")
        return 1


def _build(cluster: Cluster) -> int:
    prepare()
    return 0


def _up(cluster: Cluster) -> int:
    with locked(cluster.name):
        if not cluster.is_up():
            cluster.up()
    return _status(cluster)


def _down(cluster: Cluster) -> int:
    with locked(cluster.name):
        cluster.down()
    return 0


def _status(cluster: Cluster) -> int:
    if not cluster.is_up():
        print(f"Cluster {cluster.name} is down.")  # noqa: T201 - the answer
        return 1
    for process in list_processes(cluster.folder / "processes"):
        state = "runs" if process.find() else "ENDED"
        print(f"{process.name:26} {state}  {process.log}")  # noqa: T201 - the answer
    print(f"export KUBECONFIG={cluster.kubeconfig}")  # noqa: T201 - the answer
    return 0


_COMMANDS = {"build": _build, "up": _up, "down": _down, "status": _status}

if __name__ == "__main__":
    sys.exit(main())
