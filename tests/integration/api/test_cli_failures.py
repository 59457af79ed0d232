"""Every command in every trouble, at a real server: what docs/reference/cli-failures.md tells."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from gpudev.cli.main import run
from gpudev.client import http
from gpudev.client.config import read_surroundings
from gpudev.client.ssh_include import include
from gpudev.domain.names import ReservationId
from tests.integration.api.conftest import Person, offer_types
from tests.support.api_server import ApiServer, running_api
from tests.support.cli_tree import EXAMPLES, WITHOUT_A_SERVER, Leaf, list_leaves, list_paths
from tests.support.golden import check_file
from tests.support.reservations import make_reservation, open_test_stores, submit

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "cli-failures.md"
OPENING = """\
# What each command says when something is wrong

Written by `UPDATE_GOLDEN=1 pytest tests/integration/api/test_cli_failures.py`, which runs every command in
every situation against a real server. The exit codes are explained in [the command line](cli.md#exit-codes).

With `--json` the same error is one JSON object on stderr, `{"error": ..., "code": ..., "hint": ...}`, with
the same exit code; stdout stays empty.
"""
TWINS = ("aaaa1111-1111-4111-8111-111111111111", "aaaa2222-2222-4222-8222-222222222222")
DEAD = "http://127.0.0.1:1"
BARE: dict[str, list[str]] = {
    **{path: [] for path in ("reserve", "show", "why", "logs", "connect", "edit", "cancel")},
    "extend": ["1"],
    "stop": ["--yes"],
}
"""Commands that ask on a terminal, with the rest of what must be typed."""


@dataclass(frozen=True, slots=True)
class Situation:
    title: str
    words: str
    applies: Callable[[Leaf], bool]
    thing: str = "nosuch"
    """What the ID of the example is."""
    is_bare: bool = False
    """The command is typed without what a terminal would be asked for."""

    def words_of(self, leaf: Leaf) -> list[str]:
        return [*leaf.path.split(), *BARE[leaf.path]] if self.is_bare else leaf.words(self.thing)


def needs_login(leaf: Leaf) -> bool:
    return leaf.path != "doctor"


SITUATIONS = {
    "no_config": Situation("No configuration", "Nothing was ever set up.", needs_login),
    "server_down": Situation("Server down", "The configured server does not answer.", needs_login),
    "expired_key": Situation(
        "Expired key",
        "The kept key is refused, and so is the login that would renew it. "
        "Where that succeeds, nothing is said and the command goes on.",
        needs_login,
    ),
    "unknown": Situation(
        "Unknown id",
        "There is no such reservation, disk or user.",
        lambda leaf: leaf.takes_id and not leaf.path.startswith("admin"),
    ),
    "ambiguous": Situation(
        "Ambiguous id",
        "Two reservations of one's own begin with what was typed.",
        lambda leaf: leaf.takes_reservation,
        "aaaa",
    ),
    "not_mine": Situation(
        "Somebody else's",
        "It is there, but is another user's; that is not told.",
        lambda leaf: leaf.takes_reservation,
        "bbbb",
    ),
    "piped": Situation(
        "Nobody to ask",
        "In a pipe, with `CI` or without a terminal: what would be asked for is not typed. The user has two "
        "reservations, neither of them active.",
        lambda leaf: leaf.path in BARE,
        is_bare=True,
    ),
    "no_permission": Situation(
        "No permission",
        "What admins may do, by somebody who is none.",
        lambda leaf: leaf.path.startswith("admin"),
    ),
}


@pytest.fixture(scope="module")
def api_server(module_database: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """Nobody is counted: wrong keys come by the dozen here."""
    asyncio.run(offer_types(module_database))
    settings = {"GPU_DEV_WRONG_KEYS_PER_MINUTE": "0", "GPU_DEV_REQUESTS_PER_SECOND": "0"}
    with running_api(module_database, Path(tmp_path_factory.mktemp("state")), settings) as server:
        yield server


@pytest.fixture(scope="module")
def twins(ada: Person, eve: Person, module_database: str) -> None:
    """Two reservations of ada with the same first characters, and one of eve."""
    ada.call("GET", "/health")  # waits until the server is there
    asyncio.run(_submit_twins(module_database))


async def _submit_twins(dsn: str) -> None:
    async with open_test_stores(dsn) as stores:
        ada, eve = await stores.users.upsert("ada"), await stores.users.upsert("eve")
        for number, job in enumerate(TWINS):
            await submit(stores, make_reservation(ada, id=ReservationId(job), name=f"twin-{number}"))
        other = ReservationId("bbbb1111-1111-4111-8111-111111111111")
        await submit(stores, make_reservation(eve, id=other, name="hers"))


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("XDG_CONFIG_HOME", "SSH_AUTH_SOCK"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setattr(http, "REPEAT_PAUSES", ())
    # `submit` tells first what it would send from here.
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "train.py").write_text("pass\n")
    monkeypatch.chdir(tmp_path / "project")
    return tmp_path


@pytest.fixture
def prepare(home: Path, ada: Person, twins: None) -> Callable[[str], None]:
    """Bring this user into the situation."""

    def bring(situation: str) -> None:
        if situation == "no_config":
            return
        url = DEAD if situation == "server_down" else f"http://{ada.server.authority}"
        include(read_surroundings())  # without it editors are told of that first
        (home / "login").write_bytes(b"not the secret\n")
        described = {"api_url": url, "login_file": str(home / "login")}
        config = {"environment": "local", "environments": {"local": described}}
        (home / ".config" / "gpu-dev").mkdir(parents=True)
        (home / ".config" / "gpu-dev" / "config.json").write_text(json.dumps(config))
        key = "of-yesterday" if situation == "expired_key" else ada.key
        kept = {"api_key": key, "expires_at": (datetime.now(UTC) + timedelta(hours=1)).isoformat()}
        (home / ".gpu-dev").mkdir()
        (home / ".gpu-dev" / "credentials").write_text(json.dumps({url: kept}))

    return bring


def test_every_command_of_the_code_has_an_example() -> None:
    assert sorted(list_paths()) == sorted([*EXAMPLES, *WITHOUT_A_SERVER])


def test_the_page_tells_what_happens(
    prepare: Callable[[str], None], home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sections = []
    for name, situation in SITUATIONS.items():
        for left in (home / ".config", home / ".gpu-dev"):
            _remove(left)
        prepare(name)
        told: dict[tuple[int, str], list[str]] = {}
        for leaf in filter(situation.applies, list_leaves()):
            code = run(situation.words_of(leaf))
            captured = capsys.readouterr()
            assert captured.out == "", leaf.path
            told.setdefault((code, _clean(captured.err, home)), []).append(leaf.path)
        sections.append(_format(situation, told))
    check_file(PAGE, "\n".join([OPENING, *sections]))


@pytest.mark.parametrize("name", SITUATIONS)
def test_with_json_the_same_error_is_an_object(
    prepare: Callable[[str], None], capsys: pytest.CaptureFixture[str], name: str
) -> None:
    situation = SITUATIONS[name]
    prepare(name)
    for leaf in filter(situation.applies, list_leaves()):
        if leaf.has_json:
            plain = run(situation.words_of(leaf))
            words = capsys.readouterr().err
            code = run([*situation.words_of(leaf), "--json"])
            captured = capsys.readouterr()
            told = json.loads(captured.err)
            assert (code, captured.out) == (plain, ""), leaf.path
            assert told["error"] in words, leaf.path
            assert told["code"], leaf.path


def test_a_key_that_can_be_renewed_is_renewed_without_a_word(
    prepare: Callable[[str], None], ada: Person, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    prepare("expired_key")
    (home / "login").write_bytes(ada.server.state.login_file.read_bytes())
    assert run(["list", "--json"]) == 0
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    "zone, time",
    [
        ("", "2020-01-01 12:00 UTC"),
        ("Europe/Berlin", "2020-01-01 13:00 CET"),
        (":Asia/Tokyo", "2020-01-01 21:00 JST"),
        ("CET-1CEST,M3.5.0", "2020-01-01 12:00 UTC"),
    ],
    ids=("none", "berlin", "tokyo", "posix"),
)
def test_the_times_of_a_refusal_are_in_the_zone_of_the_machine(
    prepare: Callable[[str], None],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    zone: str,
    time: str,
) -> None:
    monkeypatch.setenv("TZ", zone)
    prepare("unknown")
    assert run(["reserve", "--gpu-type", "t4", "--gpus", "1", "--at", "2020-01-01T12:00Z"]) == 2
    assert f"A booking for {time} is in the past." in capsys.readouterr().err


def test_setup_asks_nothing_without_a_terminal(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["setup"]) == 2
    assert "There is nobody to ask here: give --environment and --api-url." in capsys.readouterr().err


def _format(situation: Situation, told: dict[tuple[int, str], list[str]]) -> str:
    rows = [
        f"| {code} | {', '.join(f'`{path}`' for path in paths)} | {words} |"
        for (code, words), paths in sorted(told.items())
    ]
    head = "| exit code | command | what it says |\n|---:|---|---|"
    return "\n".join([f"## {situation.title}\n", f"{situation.words}\n", head, *rows, ""])


def _clean(words: str, home: Path) -> str:
    """Without what differs from run to run; the lines joined for a cell of a table."""
    text = words.replace(str(home), "~").replace(DEAD, "http://127.0.0.1:8321")
    text = re.sub(r"http://127\.0\.0\.1:\d+", "http://127.0.0.1:8321", text)
    return " ".join(text.split()).replace("|", "\\|")


def _remove(folder: Path) -> None:
    for file in sorted(folder.rglob("*"), reverse=True):
        file.rmdir() if file.is_dir() else file.unlink()
    if folder.exists():
        folder.rmdir()
