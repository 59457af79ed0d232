"""`https://github.com/<user>.keys`: one public key a line, without an account and without a token."""

from __future__ import annotations

import asyncio
import http.client
import urllib.error
import urllib.request

from gpudev.domain.access import is_public_key
from gpudev.domain.errors import KeysUnavailable
from gpudev.texts.fact import fact

_MOST_BYTES = 1_000_000
_NOT_FOUND = 404


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
