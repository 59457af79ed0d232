"""What the kept plan costs: a full pass, a newcomer, somebody who leaves, and many at once.

One core, plain Python. The time is that of the processor, not of the clock on the wall, since the machines
are shared and the plan waits for nobody.
"""

from __future__ import annotations

import gc
import random
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

from bench.figures import milliseconds, percentile
from bench.page import Section
from gpudev.domain.names import NodeName
from gpudev.domain.schedule.grid import Ask
from gpudev.domain.schedule.plan import Plan

TITLE = "The kept plan"
COMMAND = "python -m bench scheduler"

NODES, GPUS = 1250, 8
NOW = 1000
LENGTHS = (7, 13, 25, 25, 49, 49, 97, 145, 289)
"""Half an hour to a day, in steps of five minutes."""
SIZES = (1, 1, 2, 2, 4, 8)
GANGS = 0.01
"""How many of the requests want several whole nodes."""

Lent = tuple[NodeName, int, int, int]
"""Node, slots, from, to."""


@dataclass(frozen=True, slots=True)
class Target:
    words: str
    seconds: float
    most: float

    @property
    def is_met(self) -> bool:
        return self.seconds < self.most

    def row(self) -> str:
        verdict = "yes" if self.is_met else "**no**"
        return f"| {self.words} | {milliseconds(self.seconds)} | {milliseconds(self.most)} | {verdict} |"


@dataclass(frozen=True, slots=True)
class Effort:
    queues: tuple[int, ...] = (1_000, 3_000, 10_000, 30_000, 100_000)
    samples: int = 200
    batches: int = 10


QUICK = Effort((1_000, 10_000), 40, 3)
MOST_GROWTH = 20
"""How much longer a full pass may take with ten times as many."""
QUEUE = 10_000
"""How many wait while single events are measured."""


def measure(quick: bool = False) -> Section:  # noqa: FBT001, FBT002 - one switch, the same for every benchmark
    effort = QUICK if quick else Effort()
    passes = {count: _time_full_pass(count) for count in effort.queues}
    targets = [*_pass_targets(passes), *_event_targets(effort)]
    if quick and not all(target.is_met for target in targets):
        print("\n".join(target.row() for target in targets))
        sys.exit("A target was missed.")
    return Section(TITLE, COMMAND, _report(passes, targets))


def _report(passes: dict[int, float], targets: list[Target]) -> str:
    growth = "\n".join(
        f"| {count:,} | {milliseconds(seconds)} | {seconds / count * 1e6:.0f} |"
        for count, seconds in passes.items()
    )
    rows = "\n".join(target.row() for target in targets)
    points = ", ".join(f"{seconds:.3f}" for seconds in passes.values())
    plot = (
        f'```mermaid\nxychart-beta\n    x-axis "waiting" [{", ".join(map(str, passes))}]\n'
        f'    y-axis "seconds"\n    line [{points}]\n```'
    )
    return (
        f"{NODES:,} nodes of {GPUS} GPUs, all of them lent until some time in the next day; requests of 1 to "
        f"8 GPUs for half an hour to a day, {GANGS:.0%} of them for 2 to 4 whole nodes. Milliseconds of the "
        f"processor, one core; single events are measured with {QUEUE:,} waiting.\n\n"
        f"| what | took | target | met |\n|---|---:|---:|---|\n{rows}\n\n"
        f"Everybody fitted anew, by the length of the queue:\n\n"
        f"| waiting | ms | µs each |\n|---:|---:|---:|\n{growth}\n\n"
        f"{_describe_growth(passes)}{plot}\n"
    )


def _describe_growth(passes: dict[int, float]) -> str:
    if not {10_000, 100_000} <= passes.keys():
        return ""
    ratio = passes[100_000] / passes[10_000]
    verdict = "met" if ratio <= MOST_GROWTH else "**missed**"
    wanted = f"10,000 to 100,000; at most {MOST_GROWTH}: {verdict}"
    return f"Ten times as many take {ratio:.1f} times as long ({wanted}).\n\n"


def _pass_targets(passes: dict[int, float]) -> list[Target]:
    most = {10_000: 1.0, 100_000: 10.0}
    return [
        Target(f"full pass, {count:,} waiting", passes[count], limit)
        for count, limit in most.items()
        if count in passes
    ]


def _event_targets(effort: Effort) -> list[Target]:
    chance = random.Random(7)
    plan, running = make_fleet(chance)
    waiting = [ask.id for ask in make_asks(chance, QUEUE) if plan.add(ask)]
    newcomers = [
        Ask(f"new-{ask.id}", (QUEUE, ask.id), ask.slots, ask.length, ask.node_count)
        for ask in make_asks(chance, effort.samples)
    ]
    submits = [_time(lambda ask=ask: plan.add(ask)) for ask in newcomers]  # type: ignore[misc]
    checks = [_time(lambda: _check_extension(plan, chance)) for _ in range(effort.samples)]
    leaves = [_time(lambda: _leave(plan, waiting, running, chance, 1)) for _ in range(effort.samples)]
    batches = [_time(lambda: _leave(plan, waiting, running, chance, 50)) for _ in range(effort.batches)]
    return [
        Target("submit, p99", percentile(submits, 99), 0.005),
        Target("check of an extension, p99", percentile(checks, 99), 0.005),
        Target("cancel or release, p50", percentile(leaves, 50), 0.1),
        Target("cancel or release, p95", percentile(leaves, 95), 0.4),
        Target("50 of them at once, the slowest", max(batches), 0.5),
    ]


def make_fleet(chance: random.Random) -> tuple[Plan, list[Lent]]:
    """Every GPU is lent, in pieces, until some time in the next day."""
    plan = Plan({NodeName(f"node-{number:05}"): GPUS for number in range(NODES)}, NOW, longest=max(LENGTHS))
    running: list[Lent] = []
    for number in range(NODES):
        left = GPUS
        while left:
            slots = chance.choice([size for size in (1, 2, 4, 8) if size <= left])
            lent = (NodeName(f"node-{number:05}"), slots, NOW, NOW + chance.randint(1, 289))
            plan.hold(*lent)
            running.append(lent)
            left -= slots
    return plan, running


def make_asks(chance: random.Random, count: int) -> list[Ask]:
    return [_make_ask(chance, number) for number in range(count)]


def _make_ask(chance: random.Random, number: int) -> Ask:
    length = chance.choice(LENGTHS)
    if chance.random() < GANGS:
        return Ask(f"{number:06}", (number, ""), GPUS, length, chance.choice((2, 3, 4)))
    return Ask(f"{number:06}", (number, ""), chance.choice(SIZES), length)


def _time_full_pass(count: int) -> float:
    chance = random.Random(count)
    (plan, _), asks = make_fleet(chance), make_asks(chance, count)

    def fit_everybody() -> None:
        for ask in asks:
            plan.add(ask)

    return _time(fit_everybody)


def _check_extension(plan: Plan, chance: random.Random) -> None:
    node = NodeName(f"node-{chance.randrange(NODES):05}")
    plan.stays_free_until(node, chance.choice(SIZES), NOW + chance.randint(1, 289))


def _leave(plan: Plan, waiting: list[str], running: list[Lent], chance: random.Random, count: int) -> None:
    """By chance one that waits and one that runs."""
    for _ in range(count):
        if chance.random() < 0.5:
            plan.remove(waiting.pop(chance.randrange(len(waiting))))
        else:
            plan.give_back(*running.pop(chance.randrange(len(running))))
    plan.compress()


def _time(work: Callable[[], object]) -> float:
    gc.collect()
    before = time.process_time()
    work()
    return time.process_time() - before
