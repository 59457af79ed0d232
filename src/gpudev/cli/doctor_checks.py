"""What `gpu-dev doctor` looks at, one question a function: what is found, whether it is in order, and a fix.

Each answers by itself; those that need a server are left out if none answers. Nothing is changed.
"""

from __future__ import annotations

import shutil
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum

from gpudev import __version__
from gpudev.client import codec, session
from gpudev.client.config import Surroundings, Target, find_target
from gpudev.client.errors import ClientError
from gpudev.client.files import Credentials
from gpudev.client.http import Http, Request
from gpudev.client.ssh_keys import list_identity_files, list_keys_at_hand
from gpudev.client.versions import UPGRADE, Verdict, judge
from gpudev.wire.cluster import Health

MOST_SKEW_SECONDS = 30.0
"""Signed requests are refused when they are minutes old, and a proof on one machine after a minute."""
GITHUB_SECONDS = 5.0


class State(StrEnum):
    GOOD = "ok"
    DOUBTFUL = "note"
    BAD = "FAIL"


@dataclass(frozen=True, slots=True)
class Finding:
    name: str
    state: State
    words: str
    fix: str = ""


def examine(surroundings: Surroundings) -> Iterator[Finding]:
    """One finding after the other, as they are made."""
    yield _look_for_ssh()
    yield _look_for_keys(surroundings)
    try:
        target = find_target(surroundings)
    except ClientError as error:
        yield Finding("address", State.BAD, error.message, error.hint)
        return
    if target.github_user:
        yield _look_at_github(target.github_user, surroundings)
    with Http(target.api_url, socket_file=target.socket_file) as http:
        try:
            began, answer = time.time(), http.send(Request("GET", "/health", may_repeat=True))
        except ClientError as error:
            yield Finding("address", State.BAD, error.message, error.hint)
            return
        yield _judge_answer(target, answer.status)
        if not answer.is_ok:
            return
        yield _judge_clock(codec.loads(Health, answer.body), began, time.time())
        yield _judge_version(http)
    yield _look_at_login(surroundings, target)


def _look_for_ssh() -> Finding:
    missing = [program for program in ("ssh", "ssh-keygen") if shutil.which(program) is None]
    if missing:
        words = f"{' and '.join(missing)} cannot be found."
        return Finding("ssh", State.BAD, words, "Install the OpenSSH client.")
    return Finding("ssh", State.GOOD, f"{shutil.which('ssh')}")


def _look_for_keys(surroundings: Surroundings) -> Finding:
    public = list_keys_at_hand(surroundings)
    private = list_identity_files(surroundings)
    in_agent = [key for key in public if key.file is None]
    if private or in_agent:
        return Finding("ssh keys", State.GOOD, f"{len(private)} on disk, {len(in_agent)} only in the agent.")
    words = f"None in {surroundings.ssh_dir} and none in the agent; the first reservation makes one."
    return Finding("ssh keys", State.DOUBTFUL, words, "Make one with: ssh-keygen -t ed25519")


def _look_at_github(user: str, surroundings: Surroundings) -> Finding:
    """Whether one of the keys that are published there is here."""
    url = f"{surroundings.github_url}/{user}.keys"
    try:
        published = _read_published(url)
    except urllib.error.HTTPError as error:
        fix = "Correct it with: gpu-dev config set github_user NAME"
        return Finding("github keys", State.BAD, f"{url} answers with HTTP status {error.code}.", fix)
    except (OSError, ValueError) as error:
        return Finding("github keys", State.DOUBTFUL, f"{url} cannot be read: {error}.", "Look again later.")
    here = {tuple(key.line.split()[:2]) for key in list_keys_at_hand(surroundings)}
    if published & here:
        return Finding("github keys", State.GOOD, f"{len(published & here)} of {len(published)} of {user}.")
    words = f"None of the {len(published)} keys that {user} has published is here."
    return Finding("github keys", State.DOUBTFUL, words, "Add yours at: https://github.com/settings/keys")


def _read_published(url: str) -> set[tuple[str, ...]]:
    with urllib.request.urlopen(url, timeout=GITHUB_SECONDS) as answer:  # noqa: S310 - the user's setting
        return {tuple(line.split()[:2]) for line in answer.read().decode().splitlines()}


def _judge_answer(target: Target, status: int) -> Finding:
    where = f"{target.api_url} (environment {target.environment})"
    if status < 400:  # noqa: PLR2004 - the first status that is an error
        return Finding("address", State.GOOD, where)
    words = f"{where} answers with HTTP status {status}."
    return Finding("address", State.BAD, words, "Is it a gpu-dev server? See: gpu-dev config show")


def _judge_clock(health: Health, began: float, ended: float) -> Finding:
    """The server read its clock between two moments of ours; only what lies outside them is a difference."""
    theirs = health.timestamp.timestamp()
    skew = max(began - theirs, theirs - ended, 0.0)
    if skew <= MOST_SKEW_SECONDS:
        return Finding("clock", State.GOOD, f"within {max(1, round(skew))} s of the server's")
    words = f"It differs from the server's by {skew:.0f} s: logins will be refused."
    return Finding("clock", State.BAD, words, "Set it, for example with: sudo timedatectl set-ntp true")


def _judge_version(http: Http) -> Finding:
    if http.server_version is None:
        return Finding("version", State.DOUBTFUL, f"{__version__} here; the server does not tell its own.")
    words = f"{__version__} here, {http.server_version} there"
    is_old = judge(__version__, http.server_version, "") is Verdict.OLD
    return Finding("version", State.DOUBTFUL if is_old else State.GOOD, words, UPGRADE if is_old else "")


def _look_at_login(surroundings: Surroundings, target: Target) -> Finding:
    try:
        with session.connect(surroundings) as client:
            user = client.whoami()
    except ClientError as error:
        return Finding("login", State.BAD, error.message, error.hint)
    entry = Credentials(surroundings.credentials_file).find_expiry(target.api_url)
    left = f", key for {round((entry - datetime.now(UTC)).total_seconds() / 60)} more min" if entry else ""
    return Finding("login", State.GOOD, f"{user.username}{left}")


_NAME_WIDTH = 11
_STATE_WIDTH = max(len(state) for state in State)


def format_finding(finding: Finding) -> str:
    line = f"{finding.state:{_STATE_WIDTH}}  {finding.name:{_NAME_WIDTH}}  {finding.words}"
    if finding.state is State.GOOD or not finding.fix:
        return line
    return f"{line}\n{' ' * (_STATE_WIDTH + _NAME_WIDTH + 4)}{finding.fix}"


def encode_findings(findings: Sequence[Finding]) -> list[dict[str, str]]:
    words = {State.GOOD: "ok", State.DOUBTFUL: "note", State.BAD: "fail"}
    return [
        {"name": each.name, "state": words[each.state], "message": each.words, "fix": each.fix}
        for each in findings
    ]
