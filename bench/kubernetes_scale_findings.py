"""What the benchmark of a fleet on Kubernetes found, and how that reads on the page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

GPU_TYPE = "h100"
GPUS_PER_NODE = 8
SUBMITTERS = 8
AT_ONCE = 16
"""As many as one controller works on."""

_WORDS = """\
{nodes} nodes of {gpus} GPUs, simulated by kwok on a real API server; {count} reservations of one GPU,
submitted by {submitters} threads of one process without waiting. The database, the API, the controllers, the
cluster's control plane, kwok and the benchmark share the machine. *By hand* are the same Services, Secrets
and pods, made by {at_once} tasks just before, and not looked at again: {by_hand:.1f} pods a second.
"""


@dataclass(frozen=True, slots=True)
class Worked:
    """Seconds of CPU."""

    controllers: float
    api_server: float
    """With its database."""
    machine: float
    """All that there was to do on it."""

    def __sub__(self, before: Worked) -> Worked:
        return Worked(
            self.controllers - before.controllers,
            self.api_server - before.api_server,
            self.machine - before.machine,
        )


@dataclass(frozen=True, slots=True)
class Findings:
    """Moments in seconds since the first submit."""

    submitted: float
    created: list[float]
    """When a watch told of each pod."""
    active: float
    """When all were."""
    worked: Worked
    peak_memory: int
    """Of the controller that took most, in bytes."""
    lists: dict[str, int]
    """How often each collection was listed by anybody meanwhile."""

    @property
    def rate(self) -> float:
        """Pods created a second, from the first to the last."""
        return (len(self.created) - 1) / (self.created[-1] - self.created[0])


def report(by_hand_seconds: float, found: Sequence[Findings], nodes: int) -> str:
    """The findings with one controller, with two, and so on."""
    count = len(found[0].created)
    by_hand = count / by_hand_seconds
    words = _WORDS.format(
        nodes=nodes,
        gpus=GPUS_PER_NODE,
        count=count,
        submitters=SUBMITTERS,
        at_once=AT_ONCE,
        by_hand=by_hand,
    )
    rows = {
        "all submitted after": [f"{one.submitted:.1f} s" for one in found],
        "pods created": [f"{len(one.created)}" for one in found],
        "all pods created after": [f"{one.created[-1]:.1f} s" for one in found],
        "**admissions: pods created a second**": [f"{one.rate:.1f}" for one in found],
        "of those by hand": [f"{one.rate / by_hand:.2f}" for one in found],
        "all active after": [f"{one.active:.1f} s" for one in found],
        "CPU of the controllers, a reservation": [_each(one, one.worked.controllers) for one in found],
        "CPU of the API server and etcd": [_each(one, one.worked.api_server) for one in found],
        "CPU of everything on the machine": [_each(one, one.worked.machine) for one in found],
        "cores that were busy": [f"{one.worked.machine / one.active:.2f}" for one in found],
        "peak memory of a controller": [f"{one.peak_memory / 2**20:.0f} MiB" for one in found],
        "lists that anybody asked of the API server": [_in_words(one.lists) for one in found],
    }
    heads = [f"{number} controller{'s' if number > 1 else ''}" for number in range(1, len(found) + 1)]
    lines = [_row("", heads), _row("---", ["---:"] * len(found)), *(_row(*row) for row in rows.items())]
    return f"{words}\n" + "\n".join(lines)


def _each(found: Findings, seconds: float) -> str:
    return f"{1000 * seconds / len(found.created):.1f} ms"


def _in_words(lists: dict[str, int]) -> str:
    return ", ".join(f"{kind} {count}" for kind, count in lists.items())


def _row(name: str, cells: Sequence[str]) -> str:
    return f"| {name} | {' | '.join(cells)} |"
