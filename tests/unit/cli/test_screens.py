"""What a person sees at a terminal, key by key: `tests/golden/terminal/*.txt`."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from gpudev.client import codec
from gpudev.wire.jobs import JobDetail
from gpudev.wire.queue import Nearby, PreviewResponse
from tests.support.fake_api import FakeApi, Reply
from tests.support.golden import check_golden
from tests.support.terminal import DOWN, ENTER, INTERRUPT, SPACE, UP, Terminal, open_terminal
from tests.support.wire_values import A_JOB, ACTIVE, JOB_ID, QUEUED, an_event, as_sse
from tests.unit.cli.conftest import plan_reservation

EVENTS = f"/v1/jobs/{JOB_ID}/events"
NARROW = 40
HALF_A_MINUTE = timedelta(seconds=30)
"""So that a span which is rounded to minutes stays the same while the test runs."""


class Album:
    """Screens with what was done before each, kept as one golden file."""

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal
        self._pages: list[str] = []

    def keep(self, words: str) -> None:
        self._pages.append(f"=== {words}\n{self._terminal.picture()}\n")

    def check(self, name: str) -> None:
        check_golden(f"terminal/{name}.txt", "\n".join(self._pages).rstrip("\n"))


@pytest.fixture(autouse=True)
def _terminal(monkeypatch: pytest.MonkeyPatch, api: FakeApi) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("TZ", zone_where_it_is_morning(datetime.now(UTC)))


def zone_where_it_is_morning(now: datetime) -> str:
    """A zone where it is past ten: the hours before and after are of the same day, so no weekday is shown."""
    hours_behind = now.hour - 10
    return f"<test>{hours_behind:+d}"


@pytest.fixture
def hold() -> Iterator[threading.Event]:
    """Keeps the stream of events open; set at the end, so that no thread of the server stays behind."""
    event = threading.Event()
    yield event
    event.set()


def run_gpu_dev(*arguments: str, columns: int = 80) -> AbstractContextManager[Terminal]:
    return open_terminal([sys.executable, "-m", "gpudev.cli.main", *arguments], os.environ, columns)


def soon(job: JobDetail) -> JobDetail:
    """The job of the golden values, with times that are near the present."""
    now = datetime.now(UTC) + HALF_A_MINUTE / 2
    ahead = {
        "estimated_start_at": now + timedelta(minutes=35) if job.estimated_start_at else None,
        "expires_at": now + timedelta(hours=3, minutes=51) if job.expires_at else None,
    }
    return replace(job, **ahead)


def answer_list(api: FakeApi, *jobs: JobDetail) -> None:
    page = {"jobs": codec.encode(jobs), "total": len(jobs), "limit": 50, "offset": 0}
    api.on("GET", "/v1/jobs", Reply(body=page))


OTHER = replace(ACTIVE, job_id="0a1b2c3d-1111-4222-8333-444455556666", name="notebook", gpu_count=1)


@pytest.mark.parametrize("columns", [80, NARROW])
def test_reserve_with_nothing_asks_for_everything(api: FakeApi, hold: threading.Event, columns: int) -> None:
    plan_reservation(api, "submitted", "placed", "active")
    api.on("GET", f"/v1/jobs/{JOB_ID}", Reply(body=codec.encode(soon(ACTIVE))))
    with run_gpu_dev("reserve", columns=columns) as terminal:
        album = Album(terminal)
        terminal.wait_for_menu("Which GPUs?")
        album.keep("gpu-dev reserve")
        terminal.press(ENTER)
        terminal.wait_for_menu("How many h100 GPUs?")
        terminal.press(DOWN)
        terminal.wait_for_menu("> 2")
        album.keep("Enter, Down")
        terminal.press(ENTER)
        terminal.wait_for("For how many hours")
        terminal.press("soon", ENTER)
        terminal.wait_for_question("Write it like", "[4]:")
        terminal.press("2h30m", ENTER)
        terminal.wait_for_menu("Which disk")
        album.keep("Enter, soon, 2h30m")
        terminal.press(UP, ENTER)
        terminal.wait_for_question("Reserve it?", "[Y/n]:")
        album.keep("Up, Enter")
        terminal.press(ENTER)
        assert terminal.wait_for_end() == 0
        if columns != NARROW:
            album.keep("Enter")
    album.check(f"reserve_{columns}")
    sent = api.seen("POST", "/v1/jobs/submit")[0].json
    assert (sent["gpu_type"], sent["gpu_count"], sent["duration_hours"]) == ("h100", 2, 2.5)
    assert sent["disk_name"] == "none"


def test_reserve_without_colour_asks_by_numbers(api: FakeApi, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    plan_reservation(api, "submitted", "placed", "active")
    api.on("GET", f"/v1/jobs/{JOB_ID}", Reply(body=codec.encode(soon(ACTIVE))))
    with run_gpu_dev("reserve") as terminal:
        album = Album(terminal)
        size = "How many simulated t4 GPUs?"
        for question, answer in [("Which GPUs?", "2"), (size, ""), ("Which disk", "3")]:
            terminal.wait_for_question(question, "Number [1]:")
            terminal.press(answer, ENTER)
            if question == size:
                terminal.wait_for_question("For how many hours", "[4]:")
                terminal.press(ENTER)
        terminal.wait_for_question("Reserve it?", "[Y/n]:")
        terminal.press("y", ENTER)
        assert terminal.wait_for_end() == 0
        album.keep("NO_COLOR=1 gpu-dev reserve")
        assert "\x1b" not in terminal.written
    album.check("reserve_no_color")


def test_a_plan_that_is_turned_down_asks_for_nothing(api: FakeApi) -> None:
    start = datetime.now(UTC) + timedelta(hours=2) + HALF_A_MINUTE / 2
    nearby = Nearby(
        gpu_type="h100", gpu_count=1, duration_hours=1.0, starts_now=True, estimated_start_at=start
    )
    preview = PreviewResponse(
        starts_now=False,
        estimated_start_at=start,
        likely_start=[start - timedelta(hours=1), start],
        current_detailed_status="1 t4 GPU on one node: t4-0 has room when 42d6c5f5 ends.",
        nearby=[nearby],
    )
    api.on("POST", "/v1/jobs/preview", Reply(body=codec.encode(preview)))
    with run_gpu_dev("reserve", "-g", "1", "-H", "1", "--no-persist") as terminal:
        album = Album(terminal)
        terminal.wait_for_menu("Which GPUs?")
        terminal.press(DOWN, ENTER)
        terminal.wait_for_question("Reserve it?", "[Y/n]:")
        album.keep("gpu-dev reserve -g 1 -H 1 --no-persist, Down, Enter")
        terminal.press("n", ENTER)
        assert terminal.wait_for_end() == 130
    album.check("plan")
    assert not api.seen("POST", "/v1/jobs/submit")


def test_progress_while_it_waits_and_starts(api: FakeApi, hold: threading.Event, home: Path) -> None:
    times = home / ".gpu-dev" / "stage-times.json"
    times.parent.mkdir(mode=0o700, exist_ok=True)
    times.write_text(f'{{"{api.url}": {{"h100/start": [7, 8, 90]}}}}')
    plan_reservation(api, "submitted")
    steps = [threading.Event() for _ in range(2)]
    queued = an_event(1, "queued", "queued", "No room.")
    placed = an_event(2, "placed", "preparing", "Placed on h100-0.")
    told = {"key": "image_fetching", "data": {"image": "pytorch"}}
    fetching = an_event(3, "progress", "preparing", "Fetching the image: pytorch.", **told)
    active = an_event(4, "active", "active", "The dev server answers on SSH.")
    api.on(
        "GET",
        EVENTS,
        Reply(stream=as_sse(queued), hold=steps[0]),
        Reply(stream=as_sse(placed), hold=steps[1]),
        Reply(stream=as_sse(fetching), hold=hold),
        Reply(stream=as_sse(active)),
    )
    api.on("GET", f"/v1/jobs/{JOB_ID}", Reply(body=codec.encode(soon(QUEUED))))
    with run_gpu_dev("reserve", "-t", "h100", columns=NARROW) as terminal:
        album = Album(terminal)
        terminal.wait_for("Position 2", "cancel it.")
        album.keep("gpu-dev reserve -t h100, in a narrow window")
        terminal.resize(80, 24)
        terminal.wait_for("Not enough GPUs of this type are free on any one node.", "cancel it.")
        album.keep("a wide window")
        api.on("GET", f"/v1/jobs/{JOB_ID}", Reply(body=codec.encode(soon(ACTIVE))))
        steps[0].set()
        terminal.wait_for("usually 8 s")
        album.keep("it is placed")
        steps[1].set()
        terminal.wait_for("Fetching the image: pytorch  ", " s")
        album.keep("its image is fetched")
        hold.set()
        assert terminal.wait_for_end() == 0
        album.keep("it is active")
    album.check("progress")
    assert '"h100/image_fetching": [1.0]' in times.read_text()


@pytest.mark.parametrize(
    "keys, word, is_cancelled",
    [
        ((ENTER,), "leave", False),
        ((DOWN, ENTER), "cancel", True),
        ((INTERRUPT,), "interrupt", False),
    ],
    ids=["leave", "cancel", "ctrl-c again"],
)
def test_ctrl_c_asks_what_shall_become_of_it(
    api: FakeApi, hold: threading.Event, keys: tuple[str, ...], word: str, *, is_cancelled: bool
) -> None:
    plan_reservation(api, "submitted")
    api.on("GET", EVENTS, Reply(stream=as_sse(an_event(1, "queued", "queued")), hold=hold))
    api.on("GET", f"/v1/jobs/{JOB_ID}", Reply(body=codec.encode(soon(QUEUED))))
    action = {"job_id": JOB_ID, "action": "cancel", "status": "requested", "message": "", "operation_id": "o"}
    api.on("POST", f"/v1/jobs/{JOB_ID}/cancel", Reply(body=action))
    with run_gpu_dev("reserve", "-t", "h100") as terminal:
        album = Album(terminal)
        terminal.wait_for("Position 2")
        terminal.press(INTERRUPT)
        terminal.wait_for_menu("What about")
        album.keep("Ctrl-C")
        terminal.press(*keys)
        assert terminal.wait_for_end() == 130
        album.keep(word)
    album.check(f"ctrl_c_{word}")
    assert bool(api.seen("POST", f"/v1/jobs/{JOB_ID}/cancel")) is is_cancelled


def test_after_ctrl_c_one_can_wait_on(api: FakeApi, hold: threading.Event) -> None:
    plan_reservation(api, "submitted")
    queued, active = an_event(1, "queued", "queued"), an_event(2, "active", "active")
    api.on("GET", EVENTS, Reply(stream=as_sse(queued), hold=hold), Reply(stream=as_sse(active)))
    waiting, there = (Reply(body=codec.encode(soon(job))) for job in (QUEUED, ACTIVE))
    api.on("GET", f"/v1/jobs/{JOB_ID}", waiting, there)
    with run_gpu_dev("reserve", "-t", "h100") as terminal:
        terminal.wait_for("Position 2")
        terminal.press(INTERRUPT)
        terminal.wait_for_menu("What about")
        terminal.press(UP, ENTER)
        assert terminal.wait_for_end() == 0
    assert api.seen("GET", EVENTS)[-1].headers["last-event-id"] == "1"


def test_the_selector(api: FakeApi) -> None:
    answer_list(api, soon(ACTIVE), soon(OTHER), soon(QUEUED))
    with run_gpu_dev("cancel") as terminal:
        album = Album(terminal)
        terminal.wait_for_menu("Cancel which?")
        album.keep("gpu-dev cancel")
        terminal.press(DOWN, SPACE, UP, SPACE)
        terminal.wait_for_menu("> [x] 7f3a91c2")
        album.keep("Down, Space, Up, Space")
        terminal.press(ENTER)
        terminal.wait_for_question("Cancel these 2?", "[y/N]:")
        album.keep("Enter")
        terminal.press("n", ENTER)
        assert terminal.wait_for_end() == 1
    album.check("selector")


def test_the_selector_chooses_one_to_show(api: FakeApi) -> None:
    answer_list(api, soon(QUEUED), replace(A_JOB, name="notebook"))
    with run_gpu_dev("show", columns=NARROW) as terminal:
        album = Album(terminal)
        terminal.wait_for_menu("Which reservation?")
        album.keep("gpu-dev show, in a narrow window")
        terminal.press("j", ENTER)
        assert terminal.wait_for_end() == 0
    album.check("selector_40")
    assert "notebook" in terminal.written


def test_the_only_candidate_is_not_asked_about(api: FakeApi) -> None:
    answer_list(api, soon(A_JOB))
    with run_gpu_dev("show") as terminal:
        assert terminal.wait_for_end() == 0
    assert "train" in terminal.written


def test_escape_leaves_a_menu(api: FakeApi) -> None:
    answer_list(api, soon(ACTIVE), soon(OTHER))
    with run_gpu_dev("show") as terminal:
        terminal.wait_for_menu("Which reservation?")
        terminal.press("\x1b")
        assert terminal.wait_for_end() == 130


def test_watch_is_drawn_anew_when_it_or_the_window_changes(api: FakeApi) -> None:
    answer_list(api, soon(ACTIVE), soon(QUEUED))
    with run_gpu_dev("list", "--watch") as terminal:
        album = Album(terminal)
        terminal.wait_for("position 2", "Ctrl-C to leave.")
        album.keep("gpu-dev list --watch")
        terminal.resize(NARROW, 24)
        terminal.wait_for("    position 2", "Ctrl-C to leave.")
        album.keep("a narrow window")
        terminal.resize(80, 24)
        answer_list(api, soon(ACTIVE))
        terminal.wait_until_gone("queued")
        album.keep("one is over, and the window is wide again")
        terminal.press(INTERRUPT)
        assert terminal.wait_for_end() == 130
    album.check("watch")
