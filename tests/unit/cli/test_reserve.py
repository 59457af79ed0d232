"""`reserve`: what is asked for, what is told meanwhile, and what is printed at the end."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from gpudev.cli.choices import choose
from gpudev.cli.request_options import Size
from gpudev.client import codec
from gpudev.client.errors import NoCapacity, Usage
from gpudev.texts.fact import parse_fact
from gpudev.texts.sentences import say
from tests.support.fake_api import FakeApi, Reply
from tests.support.wire_values import ACTIVE, AVAILABILITY, H100, JOB_ID, QUEUED, an_event, as_sse
from tests.unit.cli.conftest import GpuDev, plan_reservation

RESERVE = ("reserve", "-t", "h100")
EVENTS = f"/v1/jobs/{JOB_ID}/events"


def submitted(api: FakeApi) -> dict[str, object]:
    body: dict[str, object] = api.seen("POST", "/v1/jobs/submit")[-1].json
    return body


def test_the_defaults(gpu_dev: GpuDev, api: FakeApi) -> None:
    plan_reservation(api, "submitted", "active")
    result = gpu_dev(*RESERVE)
    assert result.code == 0
    sent = submitted(api)
    assert (sent["gpu_type"], sent["gpu_count"], sent["duration_hours"]) == ("h100", 1, 4.0)
    assert "distributed" not in sent
    assert "Asked for 1 x h100 for 4 h: reservation 7f3a91c2." in result.err


def test_everything_that_can_be_said(gpu_dev: GpuDev, api: FakeApi) -> None:
    plan_reservation(api, "submitted", "active")
    gpu_dev(*RESERVE, "-g", "16", "-d", "--for", "2h30m", "-n", "train", "--env", "A=1", "--env", "B=x=y")
    sent = submitted(api)
    assert sent["distributed"] is True
    assert (sent["gpu_count"], sent["duration_hours"], sent["name"]) == (16, 2.5, "train")
    assert sent["env_vars"] == {"A": "1", "B": "x=y"}
    keys = sent["ssh_public_keys"]
    assert isinstance(keys, list)
    assert keys[0].startswith("ssh-ed25519 ")


def test_progress_goes_to_stderr_and_the_way_in_to_stdout(gpu_dev: GpuDev, api: FakeApi, home: Path) -> None:
    plan_reservation(api, "submitted", "placed", "active")
    result = gpu_dev(*RESERVE)
    assert "7f3a91c2.\nWords of placed.\nWords of active.\n" in result.err
    config = home / ".gpu-dev" / "7f3a91c2-sshconfig"
    assert config.is_file()
    assert result.out.splitlines()[1:] == [
        "Connect with: gpu-dev connect 7f3a91c2",
        f"or with:      ssh -F {config} gpu-dev-7f3a91c2",
    ]


def test_verbose_tells_how_long_each_step_took(gpu_dev: GpuDev, api: FakeApi) -> None:
    plan_reservation(api, "submitted", "active")
    assert "(+1.5 s) active: Words of active." in gpu_dev(*RESERVE, "-v").err


def test_simulated_gpus_are_called_so(gpu_dev: GpuDev, api: FakeApi) -> None:
    plan_reservation(api, "submitted", "active")
    simulated = replace(ACTIVE, gpu_type="t4", gpu_count=1, simulated=True)
    api.on("GET", f"/v1/jobs/{JOB_ID}", Reply(body=codec.encode(simulated)))
    result = gpu_dev("reserve", "-t", "T4", "--hours", "1")
    assert "Asked for 1 x T4 (simulated) for 1 h" in result.err
    assert "ready: 1 x t4 (simulated)" in result.out


def test_json_is_the_whole_of_stdout(gpu_dev: GpuDev, api: FakeApi) -> None:
    plan_reservation(api, "submitted", "active")
    assert json.loads(gpu_dev(*RESERVE, "--json").out) == codec.encode(ACTIVE)


def test_without_waiting_the_id_is_printed(gpu_dev: GpuDev, api: FakeApi) -> None:
    plan_reservation(api, "submitted")
    assert gpu_dev(*RESERVE, "--no-wait").out == "7f3a91c2\n"
    assert not api.seen("GET", EVENTS)


def test_the_queue_is_told_with_position_start_and_reason(gpu_dev: GpuDev, api: FakeApi) -> None:
    plan_reservation(api, "active")
    queued = an_event(1, "queued", "queued", "No room.")
    start = QUEUED.estimated_start_at
    moved = an_event(
        1, "position", "queued", "The next is yours.", queue_position=1, estimated_start_at=start
    )
    active = an_event(2, "active", "active")
    api.on("GET", EVENTS, Reply(stream=as_sse(queued, moved, active)))
    told = Reply(body=codec.encode(QUEUED)), Reply(body=codec.encode(ACTIVE))
    api.on("GET", f"/v1/jobs/{JOB_ID}", *told)
    err = gpu_dev(*RESERVE).err
    assert "In the queue: position 2, starts by " in err
    assert "In the queue: position 1, starts by " in err
    assert QUEUED.current_detailed_status is not None
    assert QUEUED.current_detailed_status in err
    assert "The next is yours." in err


def test_the_place_in_the_queue_is_taken_from_the_events(gpu_dev: GpuDev, api: FakeApi) -> None:
    plan_reservation(api, "active")
    why = {"key": "reason_waiting_for_capacity", "data": {}}
    told = {"key": "reservation_queued", "data": {"position": 2, "why": why}}
    place = {"queue_position": 2, "estimated_start_at": QUEUED.estimated_start_at}
    queued = an_event(1, "queued", "queued", "Waiting at position 2. No room.", **place, **told)
    moved = an_event(1, "position", "queued", "The next is yours.", queue_position=1)
    api.on("GET", EVENTS, Reply(stream=as_sse(queued, moved, an_event(2, "active", "active"))))
    err = gpu_dev(*RESERVE).err
    assert "In the queue: position 2, starts by " in err
    assert say(parse_fact(why)) in err
    assert "In the queue: position 1, start not known yet. The next is yours." in err
    assert len(api.seen("GET", f"/v1/jobs/{JOB_ID}")) == 1, "once it is active"


def test_a_reservation_that_fails_is_an_error(gpu_dev: GpuDev, api: FakeApi) -> None:
    plan_reservation(api, "submitted", "failed")
    result = gpu_dev(*RESERVE)
    assert (result.code, result.out) == (1, "")
    assert "Error: The reservation is failed: Words of failed.\nHint: Ask again" in result.err


def test_the_servers_refusal_is_shown_as_it_is(gpu_dev: GpuDev, api: FakeApi) -> None:
    refusal = {"detail": "h100 GPUs are lent by 1, 2, 4 or 8, not 3.", "code": "x", "hint": "Ask for 1."}
    api.on("POST", "/v1/jobs/submit", Reply(400, refusal))
    result = gpu_dev(*RESERVE, "-g", "3")
    assert result.code == 2
    assert result.err == "Error: h100 GPUs are lent by 1, 2, 4 or 8, not 3.\nHint: Ask for 1.\n"


def test_without_a_type_and_without_a_terminal_the_choices_are_named(gpu_dev: GpuDev, api: FakeApi) -> None:
    result = gpu_dev("reserve")
    assert result.code == 2
    assert "Error: Which GPU type? There are h100, t4.\n" in result.err
    assert "gpu-dev reserve --gpu-type h100" in result.err


def test_the_only_type_on_offer_is_meant(gpu_dev: GpuDev, api: FakeApi) -> None:
    plan_reservation(api, "submitted", "active")
    only = replace(AVAILABILITY, availability={"h100": H100})
    api.on("GET", "/v1/gpu/availability", Reply(body=codec.encode(only)))
    assert gpu_dev("reserve").code == 0
    assert submitted(api)["gpu_type"] == "h100"


def test_a_type_without_gpus_is_asked_for_with_none() -> None:
    cpu = replace(H100, gpu_type="cpu-x86", max_per_node=0)
    assert choose(Size("CPU-x86", None, None), {"cpu-x86": cpu}).gpu_count == 0


def test_choices_that_are_not_there() -> None:
    with pytest.raises(NoCapacity):
        choose(Size(None, None, None), {})
    with pytest.raises(Usage):
        choose(Size(None, None, None), AVAILABILITY.availability)


@pytest.mark.parametrize(
    "arguments, words",
    [
        (["--env", "A"], '"A" has no value. Write NAME=VALUE.'),
        (["--for", "soon"], '"soon" is not a length of time. Write it like 2h30m, 90m or 1.5h.'),
        (["--for", "2h", "-H", "2"], "--hours and --for say the same"),
        (["-g", "two"], "'two' is not a valid integer"),
    ],
)
def test_mistyped_options_are_explained(
    gpu_dev: GpuDev, home: Path, arguments: list[str], words: str
) -> None:
    result = gpu_dev(*RESERVE, *arguments)
    assert result.code == 2
    assert words in result.err


def test_ctrl_c_leaves_the_reservation_and_says_how_to_cancel_it(api: FakeApi) -> None:
    hold = threading.Event()
    plan_reservation(api, "submitted")
    api.on("GET", EVENTS, Reply(stream=as_sse(an_event(1, "submitted", "pending", "Accepted.")), hold=hold))
    command = [sys.executable, "-m", "gpudev.cli.main", *RESERVE, "-v"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if "submitted: Accepted." in line:
                break
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
    hold.set()
    assert (process.returncode, out) == (130, "")
    assert "Reservation 7f3a91c2 goes on." in err
    assert "Cancel it with: gpu-dev cancel 7f3a91c2" in err
