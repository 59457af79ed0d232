"""What the benchmark of the API found, and how that reads on the page."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from bench.figures import milliseconds, percentile

_WORDS = """\
{connections} connections, each asking again as soon as it is answered, from a process of its own over
loopback; {rounds} rounds of {seconds:g} s for each row, in turns. The user has {jobs} ended reservations, and
100 others have 300 live ones. Load, PostgreSQL (durable) and the workers share the machine. Times in
milliseconds; requests a second are the median of the rounds, and ratios that of each round's own.

- *Constant* is a route that answers a constant in the same process: server, framework and middlewares alone.
- *One statement* is a route that authenticates and does the work in a single SQL statement whose answer
  PostgreSQL puts into JSON, and nothing else: no rules, no checks, no translation.
- The rest is the API: authentication with every request, from the database and never from a cache. *list* is
  the newest 50 with their total; after the first time their documents are kept, so that only their marks are
  read. *List of one type* has the same answer, all of it read, counted and put into JSON each time.
"""


@dataclass(frozen=True, slots=True)
class Effort:
    rounds: int = 12
    seconds: float = 0.8
    connections: int = 16


@dataclass(frozen=True, slots=True)
class Goal:
    subject: str
    floor: str
    ratio: float


GOALS = (
    Goal("get", "get: one statement", 0.6),
    Goal("availability", "availability: one statement", 0.6),
    Goal("list", "list: one statement", 0.6),
    Goal("list", "constant", 0.2),
    Goal("submit", "submit: one statement", 0.4),
)


@dataclass(slots=True)
class Rounds:
    elapsed: list[float] = field(default_factory=list)
    latencies: list[list[float]] = field(default_factory=list)

    @property
    def rates(self) -> list[float]:
        return [len(answers) / seconds for answers, seconds in zip(self.latencies, self.elapsed, strict=True)]

    @property
    def rate(self) -> float:
        return percentile(self.rates, 50)

    def latency(self, percent: float) -> float:
        return percentile([one for answers in self.latencies for one in answers], percent)


@dataclass(slots=True)
class Findings:
    subjects: defaultdict[str, Rounds] = field(default_factory=lambda: defaultdict(Rounds))

    def add(self, subject: str, measured: tuple[float, list[float]]) -> None:
        elapsed, latencies = measured
        self.subjects[subject].elapsed.append(elapsed)
        self.subjects[subject].latencies.append(latencies)

    def ratios(self, goal: Goal) -> list[float]:
        """Each round compared with its own floor, the lowest first."""
        pairs = zip(self.subjects[goal.subject].rates, self.subjects[goal.floor].rates, strict=True)
        return sorted(rate / floor for rate, floor in pairs)


def introduce(effort: Effort, jobs: int) -> str:
    return _WORDS.format(
        connections=effort.connections, rounds=effort.rounds, seconds=effort.seconds, jobs=jobs
    ).strip()


def report(workers: int, found: Findings) -> str:
    rows = [_describe(subject, rounds) for subject, rounds in found.subjects.items()]
    goals = [_judge(goal, found.ratios(goal)) for goal in GOALS]
    return "\n".join(
        [
            *(f"### {workers} worker{'' if workers == 1 else 's'}", ""),
            *("| | requests/s | p50 | p99 |", "|---|---:|---:|---:|", *rows, ""),
            *("| | of | ratio | goal | | each round, sorted |", "|---|---|---:|---:|---|---|", *goals),
        ]
    )


def _describe(subject: str, rounds: Rounds) -> str:
    p50, p99 = milliseconds(rounds.latency(50)), milliseconds(rounds.latency(99))
    return f"| {subject} | {rounds.rate:.0f} | {p50} | {p99} |"


def _judge(goal: Goal, ratios: list[float]) -> str:
    median = percentile(ratios, 50)
    verdict = "met" if median >= goal.ratio else "missed"
    rounds = " ".join(f"{ratio:.2f}" for ratio in ratios)
    return f"| {goal.subject} | {goal.floor} | {median:.2f} | {goal.ratio:g} | {verdict} | {rounds} |"
