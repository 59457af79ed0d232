"""The API as a process with an STS behind it, and the ways to log in to it by AWS."""

from __future__ import annotations

import asyncio
import os
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import asyncpg

from tests.support.api_server import Answer, ApiServer, running_api
from tests.support.sigv4 import Key
from tests.support.sts import ACCOUNT, Sts

PUBLIC_NAME = "gpu-dev.example.org"
LOGIN = "/v1/auth/aws-login"


@dataclass(frozen=True)
class World:
    """One database, one STS, and as many API processes on them as a test wants."""

    dsn: str
    sts: Sts
    folder: Path

    def api(self, **changes: str | None) -> AbstractContextManager[ApiServer]:
        settings = {
            "GPU_DEV_STS_ENDPOINT": self.sts.url,
            "GPU_DEV_PUBLIC_NAMES": f"{PUBLIC_NAME},127.0.0.1",
            "ALLOWED_AWS_ACCOUNTS": ACCOUNT,
            # For older clients, which send the credentials themselves.
            "GPU_DEV_ACCEPT_AWS_CREDENTIALS": "true",
            "AWS_EC2_METADATA_DISABLED": "true",
            "AWS_ACCESS_KEY_ID": None,
            "AWS_SECRET_ACCESS_KEY": None,
            "AWS_CONFIG_FILE": os.devnull,
            "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        }
        return running_api(self.dsn, self.folder, {**settings, **changes})

    def execute(self, statement: str, *values: object) -> None:
        async def run() -> None:
            connection = await asyncpg.connect(self.dsn)
            await connection.execute(statement, *values)
            await connection.close()

        asyncio.run(run())


def log_in(server: ApiServer, request: object) -> Answer:
    return server.call("POST", LOGIN, {"sts_request": request})


def log_in_raw(server: ApiServer, key: Key, **changes: Any) -> Answer:
    body = {
        "aws_access_key_id": key.access_key_id,
        "aws_secret_access_key": key.secret,
        "aws_session_token": key.token,
    }
    return server.call("POST", LOGIN, {**body, **changes})


def refusal(answer: Answer) -> tuple[int, str]:
    assert answer.json["detail"]
    return answer.status, answer.json["code"]
