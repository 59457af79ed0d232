"""`https://github.com/<user>.keys`: one public key a line, without an account and without a token."""

from __future__ import annotations

import asyncio
import http.client
import urllib.error
import urllib.request

from gpudev.domain.access import is_public_key
from gpudev.domain.errors import KeysUnavailable

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
                text = await asyncio.to_thread(self._read, f"{self._base_url}/{github_user}.keys")
        except (OSError, http.client.HTTPException) as error:
            words = str(error) or type(error).__name__
            raise KeysUnavailable(
                f"The SSH keys of the GitHub user {github_user} cannot be read now: {words}",
                hint="Try again in a moment, or send ssh_public_keys.",
            ) from error
        return tuple(line for line in map(str.strip, text.splitlines()) if is_public_key(line))

    def _read(self, url: str) -> str:
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
                raise OSError(f"the answer is {kind}")
            body: bytes = answer.read(_MOST_BYTES)
        return body.decode(errors="replace")
