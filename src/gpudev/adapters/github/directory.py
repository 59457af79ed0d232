"""GitHub: the public keys of a user, and whether a user is in an organisation or team, or may push.

Keys come from `https://github.com/<user>.keys`, without an account or a token. The REST API answers three
small questions, each with one answer of a known shape. "Not found" is an answer: GitHub says it of a user
who is not a member. Any other unexpected answer, such as to a token that may not ask, says nothing about the
user and is `IdentityUnavailable`. No redirect is followed, since the token would go along.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any
from urllib.parse import quote, urlsplit

from gpudev import __version__
from gpudev.domain.access import is_public_key
from gpudev.domain.errors import IdentityUnavailable, KeysUnavailable
from gpudev.domain.github import GitHubPolicy, Membership, Standing
from gpudev.texts.fact import fact

_MAX_ANSWER = 1_000_000
_LONGEST_PAUSE_SECONDS = 3600.0
_MAY_PUSH = frozenset({"admin", "maintain", "write"})
_MOST_BYTES = 1_000_000
_NOT_FOUND = 404


@dataclass(frozen=True, slots=True)
class GitHubApi:
    """How this server itself speaks to GitHub."""

    url: str
    token: str = field(repr=False)
    timeout_seconds: float = 3.0


@dataclass(frozen=True, slots=True)
class _Answer:
    status: int
    headers: Mapping[str, str]
    body: bytes


class RestDirectory:
    def __init__(self, api: GitHubApi) -> None:
        self._api = api
        self._silent_until = 0.0
        """Of the monotonic clock: GitHub has asked us not to ask before."""

    async def read_standing(self, github_user: str, policy: GitHubPolicy) -> Standing:
        user = quote(github_user, safe="")
        organisation = f"/orgs/{quote(policy.organisation, safe='')}"
        team = f"{organisation}/teams/{quote(policy.team, safe='')}"
        member, in_team, repository = await asyncio.gather(
            self._find(f"{organisation}/memberships/{user}" if policy.organisation else ""),
            self._find(f"{team}/memberships/{user}" if policy.team else ""),
            self._find(
                f"/repos/{quote(policy.repository)}/collaborators/{user}/permission"
                if policy.repository
                else ""
            ),
        )
        return Standing(
            organisation=_membership(member),
            team=_membership(in_team),
            can_push=repository.get("permission") in _MAY_PUSH,
        )

    async def _find(self, path: str) -> dict[str, Any]:
        """What GitHub says; empty if it says that there is nothing, or if there is nothing to ask."""
        if not path:
            return {}
        self._check_pause()
        try:
            async with asyncio.timeout(self._api.timeout_seconds):
                answer = await asyncio.to_thread(self._send, path)
        except (OSError, http.client.HTTPException) as error:
            raise IdentityUnavailable("github_unavailable", why=str(error) or type(error).__name__) from error
        if answer.status == http.client.NOT_FOUND:
            return {}
        if answer.status != http.client.OK:
            raise self._explain(answer)
        return _parse(answer.body)

    def _send(self, path: str) -> _Answer:
        address = urlsplit(self._api.url)
        kind = http.client.HTTPSConnection if address.scheme == "https" else http.client.HTTPConnection
        connection = kind(address.netloc, timeout=self._api.timeout_seconds)
        headers = {
            "Accept": "application/vnd.github+json",
            "Authorization": f"Bearer {self._api.token}",
            "User-Agent": f"gpu-dev/{__version__}",
            "X-GitHub-Api-Version": "2022-11-28",
        }
        try:
            connection.request("GET", f"{address.path.rstrip('/')}{path}", headers=headers)
            response = connection.getresponse()
            sent = {name.lower(): value for name, value in response.getheaders()}
            return _Answer(response.status, sent, response.read(_MAX_ANSWER))
        finally:
            connection.close()

    def _explain(self, answer: _Answer) -> IdentityUnavailable:
        pause = _find_pause(answer, time.time())
        if pause is None:
            # 401, 403 and redirects: the token or a name that the operator gave is not right.
            why = fact("github_answers_with_status", status=answer.status)
            return IdentityUnavailable("github_unavailable", why=why)
        self._silent_until = time.monotonic() + pause
        return _limited(pause)

    def _check_pause(self) -> None:
        left = self._silent_until - time.monotonic()
        if left > 0:
            raise _limited(left)


def _membership(answer: Mapping[str, Any]) -> Membership:
    state = answer.get("state")
    return Membership(state) if state in {Membership.ACTIVE, Membership.PENDING} else Membership.NONE


def _parse(body: bytes) -> dict[str, Any]:
    try:
        content = json.loads(body)
    except ValueError as error:
        raise IdentityUnavailable("github_unavailable", why=fact("github_answer_not_json")) from error
    if not isinstance(content, dict):
        raise IdentityUnavailable("github_unavailable", why=fact("github_answer_unexpected"))
    return content


def _find_pause(answer: _Answer, now: float) -> float | None:
    """For how many seconds not to ask, if the answer is that we ask too often."""
    if answer.status not in {http.client.FORBIDDEN, http.client.TOO_MANY_REQUESTS}:
        return None
    if (wait := answer.headers.get("retry-after", "")).isdecimal():
        return min(float(wait), _LONGEST_PAUSE_SECONDS)
    resets_at = answer.headers.get("x-ratelimit-reset", "")
    if answer.headers.get("x-ratelimit-remaining") == "0" and resets_at.isdecimal():
        return min(max(float(resets_at) - now, 1.0), _LONGEST_PAUSE_SECONDS)
    return 60.0 if answer.status == http.client.TOO_MANY_REQUESTS else None


def _limited(pause: float) -> IdentityUnavailable:
    why = fact("github_rate_limited")
    return IdentityUnavailable("github_unavailable", why=why, retry_after=timedelta(seconds=pause))


class GitHubKeys:
    """`timeout_seconds` is for the whole answer, looking up the name included."""

    def __init__(self, base_url: str, timeout_seconds: float) -> None:
        self._base_url = base_url.rstrip("/")
        self._timeout_seconds = timeout_seconds

    async def list_keys(self, github_user: str) -> tuple[str, ...]:
        try:
            async with asyncio.timeout(self._timeout_seconds):
                text = await asyncio.to_thread(self._read, github_user)
        except (OSError, http.client.HTTPException) as error:
            words = str(error) or type(error).__name__
            raise KeysUnavailable("github_keys_unreadable", github_user=github_user, why=words) from error
        return tuple(line for line in map(str.strip, text.splitlines()) if is_public_key(line))

    def _read(self, github_user: str) -> str:
        url = f"{self._base_url}/{github_user}.keys"
        try:
            answer = urllib.request.urlopen(url, timeout=self._timeout_seconds)  # noqa: S310 - the operator's own address
        except urllib.error.HTTPError as error:
            error.close()
            if error.code == _NOT_FOUND:
                return ""
            raise
        with answer:
            kind = answer.headers.get_content_type()
            if kind != "text/plain":
                # The page of some proxy in between: it says nothing about anybody's keys.
                why = fact("github_keys_not_text", kind=kind)
                raise KeysUnavailable("github_keys_unreadable", github_user=github_user, why=why)
            body: bytes = answer.read(_MOST_BYTES)
        return body.decode(errors="replace")
