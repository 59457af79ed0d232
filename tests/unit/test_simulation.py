"""Simulated weeks: the same seed gives the same weeks, nothing is lent twice, and promises are kept."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from gpudev.app.simulation.planned import LIKELY, PLANNED, POSITION, START_RATE, PlannedQueue
from gpudev.app.simulation.queues import Queue, Run
from gpudev.app.simulation.report import as_data, draw_waits, format_findings
from gpudev.app.simulation.simulate import FifoQueue, Scene, simulate
from gpudev.app.simulation.workload import MONDAY, Trace, Workload, generate_trace, read_trace, write_trace
from gpudev.cli.main import run
from gpudev.domain.errors import Invalid
from gpudev.domain.expiry import TimePolicy
from gpudev.domain.names import NodeName
from gpudev.domain.policy import FairShare, SharingPolicy
from gpudev.domain.queue import Submission
from gpudev.domain.quota import Quota, QuotaRule, Quotas
from tests.support.domain_values import HOUR, MINUTE

A, B = NodeName("a"), NodeName("b")
FLEET = {A: 8, B: 8}
DAYS = generate_trace(Workload(nodes=2, weeks=1, seed=5))[:150]


def ask(minute: int, gpus: int = 8, hours: float = 1, **changes: object) -> Submission:
    return replace(Submission(MONDAY + minute * MINUTE, "ada", gpus, hours * HOUR), **changes)


def list_overfull(runs: tuple[Run, ...], fleet: dict[NodeName, int]) -> list[Run]:
    """Those whose start brings a node to more than it has."""
    return [
        one
        for one in runs
        for node in one.nodes
        if one.started
        and fleet[node]
        < sum(
            other.asked.gpus
            for other in runs
            if node in other.nodes
            and other.started
            and other.ended
            and other.started <= one.started < other.ended
        )
    ]


class TestQueues:
    @pytest.mark.parametrize("kind", [PlannedQueue, FifoQueue])
    def test_nothing_is_lent_twice_and_everything_ends(self, kind: type[Queue]) -> None:
        runs = kind(FLEET, TimePolicy()).replay(DAYS)
        assert list_overfull(runs, FLEET) == []
        assert [one for one in runs if one.ended is None and not one.gave_up] == []
        assert any(one.wait for one in runs)

    def test_every_promise_is_kept(self) -> None:
        runs = PlannedQueue(FLEET, TimePolicy()).replay(DAYS)
        told = [one for one in runs if one.started and PLANNED in one.estimates]
        assert told
        assert [one for one in told if one.started and one.started > one.estimates[PLANNED]] == []

    def test_where_nobody_leaves_early_starts_are_exactly_those_promised(self) -> None:
        """In the grid's own time: all lengths fill their steps, and servers are there at once."""
        policy = TimePolicy(start_allowance=timedelta(seconds=30), grace=timedelta(seconds=270))
        trace = tuple(ask(5 * number, gpus=8, hours=1) for number in range(6))
        runs = PlannedQueue({A: 8}, policy).replay(trace)
        assert [one.started for one in runs[1:]] == [one.estimates[PLANNED] for one in runs[1:]]

    def test_short_one_goes_before_a_long_one_that_came_first_where_it_delays_nobody(self) -> None:
        trace = (ask(0, 4, 4), ask(1, 8, 4), ask(2, 4, 1))
        planned, fifo = (kind({A: 8}, TimePolicy()).replay(trace) for kind in (PlannedQueue, FifoQueue))
        assert [one.wait == timedelta() for one in planned] == [True, False, True]
        assert [one.wait == timedelta() for one in fifo] == [True, False, False]

    def test_who_gives_up_leaves_the_room_to_others(self) -> None:
        trace = (ask(0, hours=8), ask(1, hours=8, gives_up=HOUR), ask(2))
        first, second, third = PlannedQueue({A: 8}, TimePolicy()).replay(trace)
        assert second.gave_up
        assert (first.ended, third.started) != (None, None)
        assert third.started
        assert first.ended
        assert third.started - first.ended < 5 * MINUTE

    def test_extension_into_promised_time_is_refused_and_others_are_granted(self) -> None:
        alone, refused = (
            PlannedQueue({A: 8}, TimePolicy()).replay((ask(0, extends=2 * HOUR), *others))[0]
            for others in ((), (ask(5),))
        )
        assert alone.ended
        assert refused.ended
        assert alone.ended - refused.ended == 2 * HOUR

    def test_what_is_told_besides(self) -> None:
        _, _, third = PlannedQueue({A: 8}, TimePolicy()).replay((ask(0), ask(1), ask(2)))
        asked = third.asked.at
        assert third.estimates[POSITION] == asked + 2 * 15 * MINUTE
        assert third.estimates[START_RATE] == asked + 2 * 4 * HOUR, "one start in the last four hours"
        assert LIKELY not in third.estimates, "nothing was learned yet"


class TestPolicies:
    def test_quota_holds_back_its_user_alone(self) -> None:
        trace = (ask(0, 4), ask(1, 4), ask(2, 4, user="bob"))
        sharing = SharingPolicy(Quotas((QuotaRule("ada", "*", Quota(gpus=4)),)))
        queue = PlannedQueue(FLEET, TimePolicy(), sharing, "h100", frozenset({"ada", "bob"}))
        assert [one.wait == timedelta() for one in queue.replay(trace)] == [True, False, True]

    def test_fair_share_offers_freed_room_to_who_has_used_less(self) -> None:
        """Ada has a node for hours; when Bob's other ends early, his next one goes before hers."""
        trace = (
            ask(0, hours=24),
            ask(1, hours=24, user="eve", used=3 * HOUR),
            ask(2, hours=8),
            ask(3, hours=8, user="bob"),
        )
        plain = PlannedQueue(FLEET, TimePolicy()).replay(trace)
        fair = PlannedQueue(FLEET, TimePolicy(), SharingPolicy(fair_share=FairShare(24 * HOUR))).replay(trace)
        assert plain[2].started
        assert plain[3].started
        assert plain[2].started < plain[3].started
        assert fair[2].started
        assert fair[3].started
        assert fair[3].started < fair[2].started
        assert fair[2].started <= fair[2].estimates[PLANNED], "and no promise is broken for it"


class TestTrace:
    def test_same_seed_gives_the_same_weeks_and_another_others(self) -> None:
        one, again, other = (generate_trace(Workload(2, weeks=1, seed=seed)) for seed in (1, 1, 2))
        assert one == again
        assert one != other

    def test_file_has_everything(self, tmp_path: Path) -> None:
        trace = (*DAYS, ask(99_999, nodes=2, extends=HOUR, gives_up=HOUR))
        write_trace(tmp_path / "trace", trace)
        assert read_trace(tmp_path / "trace") == trace

    @pytest.mark.parametrize(
        "line, words",
        [
            ("nonsense", "line 2"),
            ('{"at": "2030-01-01T00:00:00Z"}', "'user'"),
            ('{"at": "2030-01-01T00:00:00", "user": "a", "gpus": 1, "hours": 1}', "offset"),
            ('{"at": "2030-01-01T00:00:00Z", "user": "a", "gpus": 0, "hours": 1}', "more than 0"),
            ('{"at": "2030-01-01T00:00:00Z", "user": "a", "gpus": 1, "hours": 1, "x": 1}', '"x"'),
        ],
    )
    def test_mistake_is_told_with_its_line(self, tmp_path: Path, line: str, words: str) -> None:
        file = tmp_path / "trace"
        write_trace(file, DAYS[:1])
        file.write_text(file.read_text() + line + "\n")
        with pytest.raises(Invalid, match="line 2") as refused:
            read_trace(file)
        assert words in refused.value.message
        assert "gpus" in refused.value.hint


class TestReport:
    def test_both_queues_are_compared(self) -> None:
        plan, fifo = simulate(Scene(2), DAYS)
        assert (plan.queue, fifo.queue) == ("plan", "fifo")
        assert plan.requests == fifo.requests == len(DAYS)
        assert plan.started + plan.gave_up == plan.requests
        assert 0 < plan.utilisation <= 1
        assert 0 < plan.fairness <= 1
        assert plan.median_wait <= plan.long_wait
        assert fifo.forecasts is None

    def test_it_is_words_data_and_a_picture(self) -> None:
        found = simulate(Scene(2), DAYS)
        assert "median wait, hours" in format_findings(found)
        assert json.loads(json.dumps(as_data(found)))["fifo"]["started"] == found[1].started
        lines = ET.fromstring(draw_waits(found)).findall("{http://www.w3.org/2000/svg}polyline")  # noqa: S314 - our own
        assert len(lines) == 2

    @pytest.mark.parametrize("trace", [(), (ask(0, gpus=16),)], ids=["nothing", "nothing that fits"])
    def test_where_there_is_nothing_to_replay_it_says_so(self, trace: Trace) -> None:
        with pytest.raises(Invalid):
            simulate(Scene(2), trace)


class TestCommand:
    @pytest.fixture(autouse=True)
    def _plain_settings(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        monkeypatch.setenv("HOME", str(tmp_path))

    def test_it_prints_a_table_and_draws(self, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
        chart, trace = tmp_path / "waits.svg", tmp_path / "trace"
        options = ("--nodes", "1", "--weeks", "1", "--load", "0.5")
        assert run(("admin", "simulate", *options, "--svg", str(chart), "--write-trace", str(trace))) == 0
        table = capsys.readouterr().out
        assert table.splitlines()[0].split() == ["plan", "fifo"]
        assert chart.read_text().startswith("<svg")
        assert run(("admin", "simulate", "--nodes", "1", "--trace", str(trace))) == 0
        assert capsys.readouterr().out == table

    def test_bad_policy_is_refused_with_file_and_line(
        self, capsys: pytest.CaptureFixture[str], tmp_path: Path
    ) -> None:
        file = tmp_path / "policy.toml"
        file.write_text("[[quotas]]\ngpus = -1\n")
        assert run(("admin", "simulate", "--policy", str(file))) == 1
        told = capsys.readouterr().err
        assert f"{file}, line 2: gpus = -1 is not possible." in told
        assert "Allowed: a whole number, 0 or more." in told
