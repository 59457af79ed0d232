"""What is lost with the chart's primary in the middle of writes, with its replica synchronous and not.

Two PostgreSQL servers by the chart's own scripts. Some connections write without a pause, the primary is
killed as a node dies, the replica is promoted, and what was acknowledged is compared with what is there.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass

from bench.distance import far_away
from bench.figures import milliseconds, percentile
from bench.page import Section
from tests.support.infra.postgres import Server, prepared_pair
from tests.support.infra.replication import Writes, connect, read_promises, start_both, writing

TITLE = "The loss of the primary database"
COMMAND = "python -m bench failover"
_WRITERS = 8
_WORDS = """\
Two PostgreSQL 18 servers by the scripts and the configuration of the chart, as processes of one machine, so
many milliseconds away from each other. {writers} connections write one row after the other; after {writes}
answers the primary is killed (`kill -9`) with all that is on its way, and the replica is promoted at once.
{rounds} rounds of each kind. *Lost* are rows that were acknowledged and are not there; the *window* is the
time between the first answer to a lost row and the last answer of all. *Again* is the time from the kill to
the first row that the promoted server takes. Times in milliseconds.

Without synchronous replication the window is as long as the way to the replica, and longer where it lags.
"""
_DISTANCES = (0.001, 0.02)


@dataclass(frozen=True, slots=True)
class Loss:
    acknowledged: int
    lost: int
    window: float
    again: float


def measure(quick: bool = False) -> Section:  # noqa: FBT001, FBT002 - one switch, the same for every benchmark
    rounds, writes = (1, 200) if quick else (10, 2000)
    kinds = {"synchronous (the default)": (), "asynchronous": ("postgres.synchronous=false",)}
    rows = [
        _row(words, distance, [asyncio.run(_fail_over(settings, distance, writes)) for _ in range(rounds)])
        for words, settings in kinds.items()
        for distance in _DISTANCES
    ]
    head = (
        "| replication | way | writes a round | rounds with a loss | lost, most | window, most | again, p50 |"
    )
    introduction = _WORDS.format(writers=_WRITERS, writes=writes, rounds=rounds).strip()
    table = "\n".join([head, "|---|---:|---:|---:|---:|---:|---:|", *rows])
    return Section(TITLE, COMMAND, f"{introduction}\n\n{table}")


async def _fail_over(settings: tuple[str, ...], distance: float, wanted: int) -> Loss:
    with prepared_pair(*settings) as (primary, replica):
        async with far_away(primary.port, distance) as (port, network):
            replica.environment = {**replica.environment, "PRIMARY_PORT": str(port)}
            await (await start_both(primary, replica)).close()
            await (await connect(replica)).close()
            async with writing(primary, _WRITERS, wanted) as writes:
                await writes.enough.wait()
                killed_at = time.perf_counter()
                network.cut()
                primary.kill()
        replica.promote()
        again = await _write_again(replica) - killed_at
        return _compare(writes, await read_promises(replica), again)


async def _write_again(server: Server) -> float:
    connection = await connect(server)
    await connection.execute("INSERT INTO promises VALUES (-1)")
    await connection.close()
    return time.perf_counter()


def _compare(writes: Writes, kept: set[int], again: float) -> Loss:
    lost = [writes.acknowledged[number] for number in writes.find_lost(kept)]
    window = max(writes.acknowledged.values()) - min(lost) if lost else 0.0
    return Loss(len(writes.acknowledged), len(lost), window, again)


def _row(words: str, distance: float, losses: list[Loss]) -> str:
    acknowledged = percentile([loss.acknowledged for loss in losses], 50)
    hit = sum(loss.lost > 0 for loss in losses)
    most, window = max(loss.lost for loss in losses), max(loss.window for loss in losses)
    again = percentile([loss.again for loss in losses], 50)
    figures = (
        milliseconds(distance),
        f"{acknowledged:.0f}",
        f"{hit} of {len(losses)}",
        f"{most}",
        milliseconds(window),
        milliseconds(again),
    )
    return f"| {words} | {' | '.join(figures)} |"
