"""What the benchmark of claims found, and how that reads on the page."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from bench.figures import Figure, milliseconds, table
from bench.machine import GPU_TYPE, GPUS_PER_NODE, NODES

SETTLE_SECONDS = 0.1
"""The kernel takes a sandbox apart in its own time, which is not the next one's."""
GOAL_OVERHEAD = 0.100
GOAL_FIRST_TURN = 0.010

_WORDS = """\
A fleet of {gpus} simulated GPUs ({nodes} nodes of {per_node} {gpu_type}), one GPU a request: {in_a_row} in a
row, each cleaned up {settle} ms before the next, and {at_once} at once (rounds, all samples together:
{rounds}), in turns with the same dev server started by hand. Rounds before that, not counted: {warm_ups}.
Times in milliseconds.

- Every time but one counts from the call of the SDK's `reserve`, in a process that has a key and an open
  connection already; starting the `gpu-dev` command comes on top.
- *Accepted* is when `reserve` returns: reservation and message are committed. *Heard as active* is when the
  event stream has brought the client that news, and *first SSH byte* when it has asked for the address,
  connected to it and read a byte.
- *The controller's first turn* is the time in the event `placed`: when the admission turn that gave the
  request its node had read the database and began to decide. Below it the same without the client's and most
  of the API's part: from the moment that the API put into the new row, just before writing it. *Found ready*
  is the time in the event `active`: when the controller saw that the server answers, just before writing it.
- *By hand* is `LocalCluster.create_server` on a state folder of its own until the first SSH byte: the same
  record on disk, the same zygote, the same program. *Cold* is that program run by itself, imports and all.
- Those at once are threads of one Python process, which takes its part of the same cores; by hand is one
  event loop, and cheaper for that.
"""

_VERDICT = """\
In a row the product adds {overhead} ms to the start by hand (median of the pairs; goal: at most
{goal_overhead} ms, {is_overhead_met}), and the controller's first turn comes {turn} ms after the row's time
(median; goal: at most {goal_turn} ms, {is_turn_met}). At once the median claim takes {ratio:.1f} times as
long as the median start by hand.
"""


@dataclass(frozen=True, slots=True)
class Effort:
    """How much is measured."""

    in_a_row: int = 50
    at_once: int = 50
    rounds: int = 3
    warm_ups: int = 3


QUICK = Effort(in_a_row=4, at_once=8, rounds=1, warm_ups=1)


@dataclass(frozen=True, slots=True)
class Claim:
    """Moments of one claim, in seconds since the client asked."""

    accepted: float
    first_turn: float
    row_to_turn: float
    """From the row's own time to the controller's first turn; the one that does not count from the call."""
    found_ready: float
    heard_as_active: float
    first_byte: float


@dataclass(slots=True)
class Findings:
    """Claims, and starts by hand that were made in turns with them."""

    claims: list[Claim] = field(default_factory=list)
    by_hand: list[float] = field(default_factory=list)
    cold: list[float] = field(default_factory=list)

    @property
    def overhead(self) -> Figure:
        """Of each claim over its neighbour in time that was started by hand."""
        pairs = zip(self.claims, self.by_hand, strict=True)
        return Figure("overhead", [claim.first_byte - by_hand for claim, by_hand in pairs])

    @property
    def row_to_turn(self) -> Figure:
        return self._figure("— from the row's time", lambda claim: claim.row_to_turn)

    @property
    def first_byte(self) -> Figure:
        return self._figure("**first SSH byte**", lambda claim: claim.first_byte)

    @property
    def first_byte_by_hand(self) -> Figure:
        return Figure("by hand: first SSH byte", self.by_hand)

    def list_figures(self) -> list[Figure]:
        return [
            self._figure("accepted", lambda claim: claim.accepted),
            self._figure("the controller's first turn", lambda claim: claim.first_turn),
            self.row_to_turn,
            self._figure("found ready", lambda claim: claim.found_ready),
            self._figure("heard as active", lambda claim: claim.heard_as_active),
            self.first_byte,
            self.first_byte_by_hand,
            *([Figure("by hand, cold: first SSH byte", self.cold)] if self.cold else []),
        ]

    def _figure(self, words: str, read: Callable[[Claim], float]) -> Figure:
        return Figure(words, [read(claim) for claim in self.claims])


def introduce(effort: Effort) -> str:
    return _WORDS.format(
        gpus=NODES * GPUS_PER_NODE,
        nodes=NODES,
        per_node=GPUS_PER_NODE,
        gpu_type=GPU_TYPE,
        in_a_row=effort.in_a_row,
        at_once=effort.at_once,
        rounds=effort.rounds,
        warm_ups=effort.warm_ups,
        settle=round(SETTLE_SECONDS * 1000),
    ).strip()


def report(in_a_row: Findings, at_once: Findings, effort: Effort) -> str:
    return "\n\n".join(
        [
            table(f"{effort.in_a_row} in a row", in_a_row.list_figures()),
            table(f"{effort.at_once} at once", at_once.list_figures()),
            _judge(in_a_row, at_once),
        ]
    )


def _judge(in_a_row: Findings, at_once: Findings) -> str:
    overhead, turn = in_a_row.overhead.p50, in_a_row.row_to_turn.p50
    return _VERDICT.format(
        overhead=milliseconds(overhead),
        goal_overhead=round(GOAL_OVERHEAD * 1000),
        is_overhead_met="met" if overhead <= GOAL_OVERHEAD else "missed",
        turn=milliseconds(turn),
        goal_turn=round(GOAL_FIRST_TURN * 1000),
        is_turn_met="met" if turn <= GOAL_FIRST_TURN else "missed",
        ratio=at_once.first_byte.p50 / at_once.first_byte_by_hand.p50,
    ).strip()
