"""`list`, `show`, `avail`, `queue`, `status` and `whoami`: what they ask for and what they print."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from gpudev.client import codec, ssh
from gpudev.client.config import read_surroundings
from gpudev.wire.cluster import QuotaStatus, WhoAmI
from gpudev.wire.jobs import JobDetail, JobUsage, UsagePoint
from tests.support.fake_api import FakeApi, Reply, login_answer
from tests.support.wire_values import A_JOB, ACTIVE, AVAILABILITY, STATUS, WAITING
from tests.unit.cli.conftest import GpuDev


def answer_list(api: FakeApi, *jobs: JobDetail, total: int | None = None) -> None:
    page = {"jobs": codec.encode(jobs), "total": total or len(jobs), "limit": 50, "offset": 0}
    api.on("GET", "/v1/jobs", Reply(body=page))


@pytest.mark.parametrize(
    "arguments, query",
    [
        ([], "status=pending,queued,preparing,active,stopped&limit=50"),
        (["--all"], "limit=50"),
        (["--status", "Active, queued"], "status=active,queued&limit=50"),
        (["--user", "all"], "status=pending,queued,preparing,active,stopped&user=all&limit=50"),
        (["--limit", "3"], "status=pending,queued,preparing,active,stopped&limit=3"),
    ],
)
def test_list_asks_for_the_right_ones(
    gpu_dev: GpuDev, api: FakeApi, arguments: list[str], query: str
) -> None:
    answer_list(api, ACTIVE)
    assert gpu_dev("list", *arguments).code == 0
    assert api.requests[-1].path == f"/v1/jobs?{query}"


def test_list_prints_a_table(gpu_dev: GpuDev, api: FakeApi) -> None:
    answer_list(api, A_JOB)
    assert gpu_dev("list").out.splitlines() == [
        "ID        NAME   GPUS      STATUS   WHEN",
        "7f3a91c2  train  2 x h100  pending  being looked at",
    ]


def test_list_of_others_says_whose_each_is(gpu_dev: GpuDev, api: FakeApi) -> None:
    answer_list(api, A_JOB)
    assert gpu_dev("list", "--user", "all").out.splitlines()[1].startswith("ada   7f3a91c2  train")


def test_list_of_others_leaves_ones_own_ssh_files_alone(gpu_dev: GpuDev, api: FakeApi) -> None:
    config = ssh.write_config(read_surroundings(), api.url, ACTIVE, ())
    answer_list(api)
    gpu_dev("list", "--user", "eve")
    assert config.exists()


@pytest.mark.parametrize("form", [["--json"], ["-o", "json"]])
def test_list_as_json(gpu_dev: GpuDev, api: FakeApi, form: list[str]) -> None:
    answer_list(api, ACTIVE)
    assert json.loads(gpu_dev("list", *form).out)["jobs"] == [codec.encode(ACTIVE)]


def test_list_by_name_can_be_piped(gpu_dev: GpuDev, api: FakeApi) -> None:
    answer_list(api, ACTIVE, replace(A_JOB, name="other"))
    assert gpu_dev("list", "-o", "name").out == "train\nother\n"


def test_an_empty_list_leaves_stdout_empty(gpu_dev: GpuDev, api: FakeApi) -> None:
    answer_list(api)
    result = gpu_dev("list")
    assert (result.out, result.err) == ("", "No reservations. Ask for GPUs with: gpu-dev reserve\n")


def test_a_page_says_that_there_is_more(gpu_dev: GpuDev, api: FakeApi) -> None:
    answer_list(api, ACTIVE, total=70)
    assert "1 of 70 are shown" in gpu_dev("list", "--all").err


def test_an_unknown_status_is_told_the_known_ones(gpu_dev: GpuDev, home: Path) -> None:
    result = gpu_dev("list", "--status", "running")
    assert result.code == 2
    assert '"running" is not a status. There are pending, queued,' in result.err


def test_list_removes_ssh_files_of_ended_reservations(gpu_dev: GpuDev, api: FakeApi) -> None:
    config = ssh.write_config(read_surroundings(), api.url, ACTIVE, ())
    answer_list(api, ACTIVE, total=70)
    gpu_dev("list")
    answer_list(api)
    gpu_dev("list", "--all")
    assert config.exists()
    gpu_dev("list")
    assert not config.exists()


def test_show(gpu_dev: GpuDev, api: FakeApi) -> None:
    api.on("GET", "/v1/jobs/train", Reply(body=codec.encode(ACTIVE)))
    points = [
        UsagePoint(at=ACTIVE.created_at, gpu_percent=percent, idle_share=idle)
        for percent, idle in [(0.0, 1.0), (50.0, 0.0), (100.0, 0.0), (None, 0.0)]
    ]
    usage = JobUsage(job_id=ACTIVE.job_id, simulated=False, points=points)
    api.on("GET", f"/v1/jobs/{ACTIVE.job_id}/usage", Reply(body=codec.encode(usage)))
    shown = gpu_dev("show", "train").out
    assert "Connect       gpu-dev connect 7f3a91c2" in shown
    assert "▁▅█· GPU 50% on average, no sign of use for 25% of the time" in shown
    assert json.loads(gpu_dev("show", "train", "--json").out) == codec.encode(ACTIVE)


def test_show_prints_each_warning_once(gpu_dev: GpuDev, api: FakeApi) -> None:
    warned = replace(A_JOB, warning="Jupyter is not started.")
    api.on("GET", "/v1/jobs/train", Reply(body=codec.encode(warned)))
    assert gpu_dev("show", "train").out.count("Jupyter is not started.") == 1


@pytest.mark.parametrize("name", ["avail", "availability"])
def test_avail_calls_simulated_gpus_simulated(gpu_dev: GpuDev, api: FakeApi, name: str) -> None:
    out = gpu_dev(name).out
    assert "t4 (simulated)" in out
    assert "h100 (simulated)" not in out


def test_avail_in_other_forms(gpu_dev: GpuDev, api: FakeApi) -> None:
    assert json.loads(gpu_dev("avail", "--json").out) == codec.encode(AVAILABILITY)
    assert gpu_dev("avail", "-o", "name").out == "h100\nt4\n"
    assert gpu_dev("avail", "-o", "yaml").out.startswith("availability:\n  h100:\n    gpu_type:")


def test_status(gpu_dev: GpuDev, api: FakeApi) -> None:
    api.on("GET", "/v1/cluster/status", Reply(body=codec.encode(STATUS)))
    assert "Note: The t4 GPUs are simulated: they do not exist." in gpu_dev("status").out
    assert json.loads(gpu_dev("status", "--json").out) == codec.encode(STATUS)


def test_queue(gpu_dev: GpuDev, api: FakeApi) -> None:
    api.on("GET", "/v1/queue", Reply(body=codec.encode(WAITING)))
    assert len(gpu_dev("queue").out.splitlines()) == 1 + WAITING.total
    assert json.loads(gpu_dev("queue", "--json").out) == codec.encode(WAITING)
    assert gpu_dev("queue", "-o", "name").out == "train\nfresh\n"


def test_queue_of_one_type(gpu_dev: GpuDev, api: FakeApi) -> None:
    api.on("GET", "/v1/queue", Reply(body=codec.encode(WAITING)))
    chosen = json.loads(gpu_dev("queue", "-t", "T4", "--json").out)
    assert (list(chosen["queue"]), chosen["total"]) == (["t4"], 2)


@pytest.mark.parametrize("arguments", [[], ["-o", "name"], ["-t", "b200"]], ids=str)
def test_an_empty_queue_leaves_stdout_empty(gpu_dev: GpuDev, api: FakeApi, arguments: list[str]) -> None:
    empty = WAITING if "b200" in arguments else replace(WAITING, queue={}, total=0)
    api.on("GET", "/v1/queue", Reply(body=codec.encode(empty)))
    result = gpu_dev("queue", *arguments)
    assert (result.code, result.out, result.err) == (0, "", "Nobody waits.\n")


def test_whoami_by_aws(gpu_dev: GpuDev, api: FakeApi) -> None:
    arn = "arn:aws:sts::123456789012:assumed-role/Developers/ada"
    api.on("GET", "/v1/me", Reply(body={"user_id": 1, "username": "ada", "aws_arn": arn}))
    assert gpu_dev("whoami").out == f"ada at {api.url} (environment local)\nby AWS: {arn}\n"
    assert json.loads(gpu_dev("whoami", "--json").out)["aws_arn"] == arn


def test_whoami_shows_what_is_used_of_each_quota(gpu_dev: GpuDev, api: FakeApi) -> None:
    status = QuotaStatus(
        gpu_type="t4",
        gpus=2,
        waiting=3,
        reserved_gpu_hours=40.25,
        gpu_hours=90,
        period_days=7,
        max_waiting=20,
        max_reserved_gpu_hours=768,
        long_gpus=2,
        max_long_gpus=8,
    )
    weekly = replace(status, gpu_type="h100", max_gpu_hours=200, long_gpus=None, max_long_gpus=None)
    me = WhoAmI(user_id=1, username="ada", quotas=[status, weekly])
    api.on("GET", "/v1/me", Reply(body=codec.encode(me)))
    assert gpu_dev("whoami").out.splitlines()[1:] == [
        "",
        "QUOTA  OVER 4 HOURS  WAITING  RESERVED GPU-HOURS  USED OR RESERVED GPU-HOURS",
        "t4     2 of 8        3 of 20  40.2 of 768",
        "h100                 3 of 20  40.2 of 768         90 of 200 in 7 days",
    ]
    assert json.loads(gpu_dev("whoami", "--json").out)["quotas"][0]["max_waiting"] == 20


def test_login_gets_a_new_key_and_does_not_show_it(gpu_dev: GpuDev, api: FakeApi) -> None:
    first, second = (Reply(body=login_answer(f"key-of-the-{which}-login")) for which in ("first", "second"))
    api.on("POST", "/v1/auth/local-login", first, second)
    assert gpu_dev("login").out == f"ada at {api.url} (environment local)\n"
    shown = json.loads(gpu_dev("login", "--json").out)
    assert "api_key" not in shown
    assert shown["username"] == "ada"
    api.on("GET", "/v1/me", Reply(body={"user_id": 1, "username": "ada"}))
    gpu_dev("whoami")
    assert api.requests[-1].headers["authorization"] == "Bearer key-of-the-second-login"


def test_whoami(gpu_dev: GpuDev, api: FakeApi) -> None:
    api.on("GET", "/v1/me", Reply(body={"user_id": 1, "username": "ada"}))
    assert gpu_dev("whoami").out == f"ada at {api.url} (environment local)\n"
    assert json.loads(gpu_dev("whoami", "--json").out) == {
        "user_id": 1,
        "username": "ada",
        "is_admin": False,
        "api_url": api.url,
        "environment": "local",
    }
