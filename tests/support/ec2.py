"""EC2 as moto's server plays it: real requests over HTTP, counted, and refused where a test wants that."""

from __future__ import annotations

import http.client
import os
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

REGION = "us-east-2"
ZONES = ("us-east-2a", "us-east-2b")
_ERROR = (
    "<Response><Errors><Error><Code>{code}</Code><Message>Said by the test.</Message></Error></Errors>"
    "<RequestID>test</RequestID></Response>"
)


@dataclass
class Ec2:
    """One moto server. `fault` decides about each call by its name: an error code, or None to let it pass."""

    url: str
    calls: Counter[str] = field(default_factory=Counter)
    fault: Callable[[str], str | None] = lambda _name: None
    machines: dict[str, str] = field(default_factory=dict)
    clients: dict[tuple[str, int], Any] = field(default_factory=dict)
    """Made once: botocore takes a second to read what EC2 can do."""

    def reset(self) -> None:
        connection = http.client.HTTPConnection(self.url.removeprefix("http://"), timeout=30)
        connection.request("POST", "/moto-api/reset")
        assert connection.getresponse().status == 200
        connection.close()
        self.calls.clear()
        self.machines.clear()
        self.fault = lambda _name: None

    def client(self, service: str = "ec2", *, tries: int = 1) -> Any:
        if (service, tries) not in self.clients:
            self.clients[service, tries] = self._make_client(service, tries)
        return self.clients[service, tries]

    def quiet_client(self) -> Any:
        """For the hands of the test itself: it is never refused."""
        if ("quiet", 1) not in self.clients:
            self.clients["quiet", 1] = Ec2(self.url).client()
        return self.clients["quiet", 1]

    def _make_client(self, service: str, tries: int) -> Any:
        # Late: this module is loaded for every test run, and botocore takes its time.
        import botocore.session  # noqa: PLC0415
        from botocore.config import Config  # noqa: PLC0415

        client = botocore.session.Session().create_client(
            service,
            region_name=REGION,
            endpoint_url=self.url,
            aws_access_key_id="test",
            aws_secret_access_key="test",
            config=Config(retries={"mode": "standard", "total_max_attempts": tries}),
        )
        client.meta.events.register("before-send", self._before_send)
        client.meta.events.register("before-call", self._before_call)
        return client

    def _before_call(self, model: Any, **_: Any) -> None:
        self.calls[model.name] += 1

    def _before_send(self, request: Any, **_: Any) -> Any:
        """An answer given here is taken for the server's."""
        from botocore.awsrequest import AWSResponse  # noqa: PLC0415

        code = self.fault(_name_of(request.body))
        if code is None:
            return None
        status = 503 if code in {"RequestLimitExceeded", "Unavailable"} else 403
        return AWSResponse(request.url, status, {}, _Body(_ERROR.format(code=code).encode()))

    def remove_disks(self) -> None:
        """Like `reset`, for who wants the machines to stay; a hundred times as fast."""
        client = self.quiet_client()
        ours = [{"Name": "tag-key", "Values": ["gpu-dev-user"]}]
        for volume in client.describe_volumes(Filters=ours)["Volumes"]:
            for held in volume["Attachments"]:
                client.detach_volume(VolumeId=volume["VolumeId"], InstanceId=held["InstanceId"])
            client.delete_volume(VolumeId=volume["VolumeId"])
        for snapshot in client.describe_snapshots(Filters=ours, OwnerIds=["self"])["Snapshots"]:
            client.delete_snapshot(SnapshotId=snapshot["SnapshotId"])

    def find_instance(self, zone: str) -> str:
        """The same machine every time, until the next reset."""
        if zone not in self.machines:
            self.machines[zone] = self.make_instance(zone)
        return self.machines[zone]

    def make_instance(self, zone: str = ZONES[0]) -> str:
        """A machine that volumes can be attached to."""
        made = self.client().run_instances(
            ImageId="ami-12c6146b", MinCount=1, MaxCount=1, Placement={"AvailabilityZone": zone}
        )
        return str(made["Instances"][0]["InstanceId"])


def _name_of(body: Any) -> str:
    """The call that a request of EC2 makes; nothing for other services."""
    text = body.decode() if isinstance(body, bytes) else body if isinstance(body, str) else ""
    return dict(part.split("=", 1) for part in text.split("&") if "=" in part).get("Action", "")


class _Body:
    """What botocore reads an answer from."""

    def __init__(self, content: bytes) -> None:
        self._content = content

    def stream(self, *_: Any, **__: Any) -> Iterator[bytes]:
        yield self._content

    def read(self, *_: Any) -> bytes:
        return self._content


def at_random(chance: random.Random, rate: float, *codes: str) -> Callable[[str], str | None]:
    """Some calls fail with one of these codes."""

    def fault(_name: str) -> str | None:
        return chance.choice(codes) if chance.random() < rate else None

    return fault


def on_calls(*names: str, code: str) -> Callable[[str], str | None]:
    return lambda name: code if name in names else None


@pytest.fixture(scope="session")
def ec2_server() -> Iterator[Ec2]:
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.support.sts_server"],
        # Nobody here needs an image, and to read all of them takes moto seconds after each reset.
        env={**os.environ, "MOTO_EC2_LOAD_DEFAULT_AMIS": "false"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    with process:
        assert process.stdout is not None
        yield Ec2(f"http://127.0.0.1:{int(process.stdout.readline())}")
        assert process.stdin is not None
        process.stdin.close()
        process.wait(30)


@pytest.fixture
def ec2(ec2_server: Ec2) -> Ec2:
    ec2_server.reset()
    return ec2_server
