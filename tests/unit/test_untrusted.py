"""Everything that a dev server can say, as arbitrary bytes, to each parser that reads it."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gpudev.adapters.kubernetes.exec_channel import read_exit_code
from gpudev.adapters.kubernetes.facts import read_event
from gpudev.adapters.kubernetes.pod_status import find_last_end
from gpudev.adapters.kubernetes.script_reports import CpuTime, Gpus, read_listing, read_look, tell_usage
from gpudev.adapters.local.processes.identity import read_status
from gpudev.adapters.local.usage import count_in_table, read_declared
from gpudev.domain.errors import ClusterUnavailable, Invalid
from gpudev.domain.idle import IdlePolicy, judge
from gpudev.domain.names import make_printable
from gpudev.domain.notification import check_address
from gpudev.texts.fact import Fact
from gpudev.texts.sentences import say
from tests.support.reservations import NOON

LARGEST_REAL = 3e38
"""Of the columns that figures are kept in."""


def decode(said: bytes) -> str:
    """As the output of a program in a container is decoded."""
    return said.decode(errors="replace")


def check_text(text: str) -> None:
    """It can be stored and shown."""
    assert "\0" not in text
    text.encode()


def check_fact(told: Fact | None) -> None:
    if told is not None:
        check_text(say(told))
        check_text(json.dumps(told.as_json(), ensure_ascii=False))


def look(said: bytes) -> None:
    found = read_look(decode(said))
    for before in (None, CpuTime(0.0, 0.0)):
        usage = tell_usage(found, before, Gpus(1), NOON)
        assert all(math.isfinite(value) and value < LARGEST_REAL for value in usage.signals.values())
        check_text(say(judge(usage, IdlePolicy()).signals))
    assert 0 <= found.oom_kills < 2**31


def listing(said: bytes) -> None:
    found = read_listing(decode(said))
    if found is not None:
        check_text(found.text)
        assert 0 <= found.used_bytes < 2**63


def status(said: bytes) -> None:
    found = read_status(said)
    assert found is None or found.cpu_ticks >= 0


def connections(said: bytes) -> None:
    assert count_in_table(said)[22] >= 0


def declared(said: bytes) -> None:
    assert all(0 <= value <= 100 for value in read_declared(said).values())


def event(said: bytes) -> None:
    for reason in ("Pulling", "Unhealthy", "Failed", decode(said)):
        check_fact(read_event({"reason": reason, "message": decode(said)}).told)


def last_end(said: bytes) -> None:
    ended = {"exitCode": 1, "reason": "Error", "message": decode(said)}
    container = {"name": "devserver", "lastState": {"terminated": ended}, "state": {"terminated": ended}}
    check_fact(find_last_end({"spec": {}, "status": {"containerStatuses": [container]}}))


def exit_code(said: bytes) -> None:
    causes = [{"reason": "ExitCode", "message": decode(said)}]
    try:
        read_exit_code({"status": "Failure", "details": {"causes": causes}})
    except ClusterUnavailable as error:
        check_text(error.message)


def printable(said: bytes) -> None:
    for text in (decode(said), said.decode("utf-8", "surrogateescape")):
        shown = make_printable(text, 50)
        check_text(shown)
        assert shown.isprintable()
        assert len(shown) <= 50


def address(said: bytes) -> None:
    for text in (decode(said), f"https://hooks.example.org/{decode(said)}"):
        try:
            check_address(text, {"hooks.example.org"})
        except Invalid:
            continue
        text.encode("ascii")


PARSERS: list[Callable[[bytes], None]] = [
    look,
    listing,
    status,
    connections,
    declared,
    event,
    last_end,
    exit_code,
    printable,
    address,
]

WORDS = st.sampled_from(
    [b"ssh ", b"cpu ", b"gpu ", b"oom ", b"total ", b"\n", b" ", b"0", b"1", b".", b"-1", b"9" * 30, b"nan"]
)
"""What such output is made of, so that the search gets further than to the first word."""


@pytest.mark.parametrize("parse", PARSERS, ids=lambda parse: str(parse.__name__))
@given(said=st.one_of(st.binary(), st.lists(st.one_of(WORDS, st.binary(max_size=3))).map(b"".join)))
@example(said=b"gpu 1 1 0\n")
@example(said=b"ssh 1.5\n")
@example(said=b"oom 99999999999\n")
@example(said=b"cpu 0.0000000000000000001 9999999999999999999\n")
@example(said="total ² ²".encode())
@example(said=b"0 1 2024-01-01 00:00 a\0b\ntotal 1 1\n")
@example(said=b'{"gpu_use": NaN}')
@example(said=b'{"gpu_use": 1e999, "gpu_memory": "1"}')
@example(said=b"[" * 5000)
@example(said=b"1 (\xff) \xff) S 1 1")
@example(said=b"[::1")
def test_no_bytes_of_a_dev_server_are_too_odd_to_be_read(parse: Callable[[bytes], Any], said: bytes) -> None:
    parse(said)


@pytest.mark.parametrize(
    "said", ["gpu 1 1 0", "gpu 101 1 2", "gpu 1 3 2", "ssh 1.5", "ssh 9999999", "oom -1"]
)
def test_figures_that_cannot_be_are_not_known(said: str) -> None:
    assert read_look(said) == read_look("")


def test_the_status_of_a_process_with_any_name_is_read() -> None:
    numbers = " ".join(str(number) for number in range(1, 50))
    found = read_status(b"7 (\xff) x (y) S " + numbers.encode())
    assert found is not None
    assert (found.state, found.parent, found.cpu_ticks, found.start_time) == ("S", 1, 11 + 12, 19)
