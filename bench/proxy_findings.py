"""What the benchmark of the SSH proxy found, and how that reads on the page."""

from __future__ import annotations

from dataclasses import dataclass, field

from bench.figures import milliseconds, percentile

GOAL_RATIO = 0.3

_WORDS = """\
One machine, with OpenSSH's `scp` and a dev server of `gpu-dev up`, everything on the same cores. A file of
{mebibytes} MiB of chance, {rounds} times each way in turns: straight to the dev server's port, and through
the proxy (`gpu-dev ssh-proxy` as `ProxyCommand`, the proxy, then the port). Seconds of CPU are those of one
copy, at the median: of `scp`, `ssh` and what they start, of the proxy, and of the dev server.
"""
_IDLE_WORDS = """\
{tunnels} idle tunnels beside the API with {workers} workers, both on one database: {connections} connections
ask again as soon as they are answered, {rounds} rounds of {seconds:g} s with the tunnels open and as many
without, in turns. Times in milliseconds.
"""


@dataclass(frozen=True, slots=True)
class Effort:
    mebibytes: int = 1024
    copies: int = 5
    tunnels: int = 100
    rounds: int = 12
    seconds: float = 0.8
    connections: int = 16
    workers: int = 2


QUICK = Effort(mebibytes=64, copies=1, tunnels=10, rounds=2, seconds=0.4)


@dataclass(frozen=True, slots=True)
class Copy:
    """In seconds, of one copy."""

    elapsed: float
    client: float
    proxy: float
    server: float


@dataclass(slots=True)
class Copies:
    """Of one direction, round by round."""

    direct: list[Copy] = field(default_factory=list)
    proxied: list[Copy] = field(default_factory=list)

    @property
    def ratios(self) -> list[float]:
        """The speed through the proxy as a part of the direct one, each round by itself, the lowest first."""
        return sorted(
            direct.elapsed / proxied.elapsed
            for direct, proxied in zip(self.direct, self.proxied, strict=True)
        )


@dataclass(slots=True)
class Answers:
    without: list[float] = field(default_factory=list)
    beside: list[float] = field(default_factory=list)


def report_copies(copies: dict[str, Copies], effort: Effort) -> str:
    rows = []
    for direction, found in copies.items():
        for words, all_of in (("direct", found.direct), ("**proxy**", found.proxied)):
            rows.append(_copy_row(f"{direction}, {words}", all_of, effort))
    goals = [_judge(direction, found.ratios) for direction, found in copies.items()]
    words = _WORDS.format(mebibytes=effort.mebibytes, rounds=effort.copies).strip()
    head = "| | MiB/s | client CPU s | proxy CPU s | server CPU s |\n|---|---:|---:|---:|---:|"
    return "\n\n".join([words, "\n".join([head, *rows]), " ".join(goals)])


def report_answers(answers: dict[str, Answers], effort: Effort) -> str:
    words = _IDLE_WORDS.format(
        tunnels=effort.tunnels,
        workers=effort.workers,
        connections=effort.connections,
        rounds=effort.rounds,
        seconds=effort.seconds,
    ).strip()
    rows = [
        f"| {subject} | {_percentiles(found.without)} | {_percentiles(found.beside)} |"
        for subject, found in answers.items()
    ]
    head = "| | p50 without | p99 without | p50 beside | p99 beside |\n|---|---:|---:|---:|---:|"
    return f"{words}\n\n" + "\n".join([head, *rows])


def _copy_row(words: str, copies: list[Copy], effort: Effort) -> str:
    def median(part: str) -> float:
        return percentile([getattr(copy, part) for copy in copies], 50)

    speed = effort.mebibytes / median("elapsed")
    return (
        f"| {words} | {speed:.0f} | {median('client'):.1f} | {median('proxy'):.1f} | {median('server'):.1f} |"
    )


def _judge(direction: str, ratios: list[float]) -> str:
    median = percentile(ratios, 50)
    verdict = "met" if median >= GOAL_RATIO else "not met"
    rounds = " ".join(f"{ratio:.2f}" for ratio in ratios)
    return (
        f"{direction.capitalize()}: {median:.2f} of the direct speed "
        f"(goal: at least {GOAL_RATIO}, {verdict}; each round: {rounds})."
    )


def _percentiles(seconds: list[float]) -> str:
    return " | ".join(milliseconds(percentile(seconds, percent)) for percent in (50, 99))
