"""AWS as the provider of identities: whoever can sign a request is who STS says they are."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar, assert_never

import botocore.session
from botocore.credentials import Credentials, ReadOnlyCredentials
from botocore.exceptions import BotoCoreError

from gpudev.adapters.aws.sts import SigningRules, ask, check_signed_request, sign
from gpudev.domain.errors import IdentityUnavailable, Unauthenticated
from gpudev.domain.identity import read_arn
from gpudev.ports.identity import AwsCredentials, Evidence, Finding, SignedRequest

T = TypeVar("T")

MAX_QUESTIONS = 8
"""At once; the others wait. Strangers can make us ask, so this has threads of its own."""


@dataclass(frozen=True, slots=True)
class StsAccess:
    """How this server itself speaks to STS."""

    region: str
    endpoint: str = ""
    """Instead of that of AWS in the region."""

    @property
    def origin(self) -> str:
        suffix = "amazonaws.com.cn" if self.region.startswith("cn-") else "amazonaws.com"
        return self.endpoint or f"https://sts.{self.region}.{suffix}"


class AwsIdentityProvider:
    def __init__(self, access: StsAccess, servers: frozenset[str]) -> None:
        self._access = access
        self._rules = SigningRules(servers, access.endpoint)
        self._threads = ThreadPoolExecutor(MAX_QUESTIONS, thread_name_prefix="sts")

    async def identify(self, evidence: Evidence, now: datetime) -> Finding:
        match evidence:
            case SignedRequest():
                request = check_signed_request(evidence, self._rules, now)
                arn = await self._in_thread(lambda: ask(request.origin, request.headers))
                return Finding(read_arn(arn), request.proof)
            case AwsCredentials():
                return Finding(read_arn(await self._in_thread(lambda: self._ask_as(evidence))))
            case _:
                assert_never(evidence)

    async def find_own_account(self) -> str | None:
        arn = await self._in_thread(self._find_own_arn)
        return read_arn(arn).account if arn else None

    def _find_own_arn(self) -> str | None:
        try:
            found = botocore.session.Session().get_credentials()
            credentials = found.get_frozen_credentials() if found else None
        except BotoCoreError as error:
            raise IdentityUnavailable("own_aws_credentials_unreadable", words=str(error)) from error
        if credentials is None:
            return None
        try:
            return self._ask_with(credentials)
        except Unauthenticated as error:
            # Not the caller's credentials, so not the caller's fault.
            raise IdentityUnavailable("own_aws_credentials_refused", cause=error.fact) from error

    def _ask_as(self, given: AwsCredentials) -> str:
        credentials = Credentials(given.access_key_id, given.secret_access_key, given.session_token)
        return self._ask_with(credentials)

    def _ask_with(self, credentials: Credentials | ReadOnlyCredentials) -> str:
        origin = self._access.origin
        headers = sign(origin, self._access.region, credentials)
        return ask(origin, headers, refused_as="bad_credentials")

    async def _in_thread(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)
