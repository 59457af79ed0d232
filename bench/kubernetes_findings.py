"""What the benchmark on Kubernetes found, and how that reads on the page."""

from __future__ import annotations

from dataclasses import dataclass, field

from bench.figures import Figure, milliseconds, table

GOAL_TO_OURS = 1.2
GOAL_CANCEL = 0.100
GOAL_RATE = 0.8

_WORDS = """\
The real two-node cluster of `tests/support/kubernetes`, the control plane of the cluster and of the product
on the same machine. One GPU a request, {in_a_row} in a row of each kind, in turns, until the first SSH byte
at the node port; {warm_ups} before that are not counted. Times in milliseconds.

- *(a) our objects by hand*: Secret and pod as the product makes them; the NodePort Service is there already.
- *(b) a bare pod*: sshd and no volume, with the Service there already.
- *(c) the usual way*: the bare pod with a readiness probe every second, and its Service made with it.
- *(d) the product*: from the call of the SDK's `reserve` until it has heard of the server, asked for its
  address and read a byte there.
- *Cancel* is from the call of the SDK's `cancel` until a watch shows the pod with a deletion timestamp.
"""


@dataclass(frozen=True, slots=True)
class Effort:
    in_a_row: int = 15
    warm_ups: int = 1
    at_once: int = 100


QUICK = Effort(in_a_row=2, warm_ups=1, at_once=6)


@dataclass(slots=True)
class Findings:
    """In seconds."""

    ours: list[float] = field(default_factory=list)
    bare: list[float] = field(default_factory=list)
    usual: list[float] = field(default_factory=list)
    product: list[float] = field(default_factory=list)
    cancel: list[float] = field(default_factory=list)
    many_by_hand: float = 0.0
    many_by_product: float = 0.0


def report(found: Findings, effort: Effort) -> str:
    ours, product = (
        Figure("(a) our objects by hand", found.ours),
        Figure("**(d) the product**", found.product),
    )
    usual, cancel = Figure("(c) the usual way", found.usual), Figure("cancel", found.cancel)
    rows = [ours, Figure("(b) a bare pod", found.bare), usual, product, cancel]
    words = _WORDS.format(in_a_row=effort.in_a_row, warm_ups=effort.warm_ups)
    return "\n\n".join(
        [
            words.strip(),
            table("in a row", rows),
            _judge(ours, usual, product, cancel),
            _judge_many(found, effort),
        ]
    )


def _judge(ours: Figure, usual: Figure, product: Figure, cancel: Figure) -> str:
    ratio, ratio_95 = product.p50 / ours.p50, product.p95 / ours.p95
    is_near = _met(max(ratio, ratio_95) <= GOAL_TO_OURS)
    is_below = _met(product.p50 < usual.p50 and product.p95 < usual.p95)
    return (
        f"The product takes {ratio:.2f} times as long as (a), {ratio_95:.2f} at p95 "
        f"(goal: at most {GOAL_TO_OURS}, {is_near}; below (c) in both: {is_below}). "
        f"Cancel: p95 {milliseconds(cancel.p95)} ms "
        f"(goal: at most {milliseconds(GOAL_CANCEL)} ms, {_met(cancel.p95 <= GOAL_CANCEL)})."
    )


def _judge_many(found: Findings, effort: Effort) -> str:
    by_hand, by_product = effort.at_once / found.many_by_hand, effort.at_once / found.many_by_product
    return (
        f"{effort.at_once} at once, until the last one answers: {by_hand:.2f} a second by hand "
        f"(a Service each), {by_product:.2f} a second by the product, {by_product / by_hand:.2f} of it "
        f"(goal: at least {GOAL_RATE}, {_met(by_product >= GOAL_RATE * by_hand)})."
    )


def _met(is_met: bool) -> str:  # noqa: FBT001 - a word for a truth value
    return "met" if is_met else "not met"
