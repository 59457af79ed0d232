"""STS as moto plays it, with signatures that are really checked, and people who have roles in it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from tests.support.sigv4 import Key

REGION = "us-east-2"
ACCOUNT = "123456789012"
ROLE = "SSOCloudDevGpuReservation"

_CALLS_TO_SET_UP = 3
"""Moto lets in so many calls without looking at their signatures: those that make the first user."""
_MAY_ASSUME_ROLES = {
    "Version": "2012-10-17",
    "Statement": [{"Effect": "Allow", "Action": ["sts:*", "autoscaling:*", "ec2:*"], "Resource": "*"}],
}


@dataclass(frozen=True, slots=True)
class Sts:
    url: str
    root: Key
    """An IAM user who may assume any role."""

    def assume(self, name: str, *, role: str = ROLE, account: str = ACCOUNT) -> Key:
        """Keys of a session of this name."""
        client = make_client("sts", self.url, self.root)
        answer = client.assume_role(RoleArn=f"arn:aws:iam::{account}:role/{role}", RoleSessionName=name)
        given = answer["Credentials"]
        return Key(given["AccessKeyId"], given["SecretAccessKey"], given["SessionToken"])


@pytest.fixture(scope="session")
def sts() -> Iterator[Sts]:
    environment = {**os.environ, "INITIAL_NO_AUTH_ACTION_COUNT": str(_CALLS_TO_SET_UP)}
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.support.sts_server"],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    with process:
        assert process.stdout is not None
        url = f"http://127.0.0.1:{int(process.stdout.readline())}"
        yield Sts(url, _make_root(url))
        assert process.stdin is not None
        process.stdin.close()
        process.wait(30)


def make_client(service: str, url: str, key: Key) -> Any:
    # Late: this module is loaded for every test run, and botocore takes its time.
    import botocore.session  # noqa: PLC0415

    return botocore.session.Session().create_client(
        service,
        region_name=REGION,
        endpoint_url=url,
        aws_access_key_id=key.access_key_id,
        aws_secret_access_key=key.secret,
        aws_session_token=key.token,
    )


def _make_root(url: str) -> Key:
    iam = make_client("iam", url, Key("AKIAANYBODYATALL0000", "not looked at yet"))
    iam.create_user(UserName="root-of-tests")
    iam.put_user_policy(
        UserName="root-of-tests", PolicyName="all", PolicyDocument=json.dumps(_MAY_ASSUME_ROLES)
    )
    made = iam.create_access_key(UserName="root-of-tests")["AccessKey"]
    return Key(made["AccessKeyId"], made["SecretAccessKey"])
