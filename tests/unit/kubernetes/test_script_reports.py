"""What a dev server says of its use, and what follows from it."""

from __future__ import annotations

import pytest

from gpudev.adapters.kubernetes.script_reports import CpuTime, Gpus, Look, read_look, tell_usage
from gpudev.domain.idle import Signal
from tests.support.kubernetes_values import NOON


def test_every_line_is_read() -> None:
    look = read_look("ssh 2\ncpu 100.5 3000000000\noom 4\ngpu 40 20 80\ngpu 7 0 80\n")
    assert look == Look(2, CpuTime(100.5, 3.0), ((40.0, 25.0), (7.0, 0.0)), 4)


@pytest.mark.parametrize("text", ["", "ssh\n", "ssh many\n", "cpu 1\n", "gpu [N/A] 1 2\n", "other 1\n"])
def test_what_is_not_said_as_it_should_be_is_not_known(text: str) -> None:
    assert read_look(text) == Look()


def test_cpu_use_is_what_came_between_two_looks() -> None:
    usage = tell_usage(Look(cpu=CpuTime(110.0, 25.0)), CpuTime(100.0, 10.0), Gpus(1), NOON)
    assert usage.signals == {Signal.CPU: 1.5}


def test_the_first_look_does_not_know_the_cpu() -> None:
    usage = tell_usage(Look(connections=0, cpu=CpuTime(110.0, 25.0)), None, Gpus(1), NOON)
    assert usage.signals == {Signal.SSH: 0.0}


def test_the_busiest_gpu_speaks_for_all() -> None:
    usage = tell_usage(Look(gpus=((40.0, 1.0), (7.0, 25.0))), None, Gpus(2), NOON)
    assert usage.signals == {Signal.GPU_USE: 40.0, Signal.GPU_MEMORY: 25.0}


def test_one_gpu_that_does_not_answer_leaves_all_unknown() -> None:
    assert tell_usage(Look(gpus=((40.0, 1.0),)), None, Gpus(2), NOON).signals == {}


def test_simulated_gpus_do_nothing_and_say_so() -> None:
    usage = tell_usage(Look(), None, Gpus(2, is_simulated=True), NOON)
    assert usage.signals == {Signal.GPU_USE: 0.0, Signal.GPU_MEMORY: 0.0}
    assert usage.is_simulated


def test_without_gpus_nothing_is_asked_of_them() -> None:
    assert tell_usage(Look(), None, Gpus(0), NOON).absent == {
        Signal.JUPYTER,
        Signal.GPU_USE,
        Signal.GPU_MEMORY,
    }
