"""The operator's policy of sharing, from a TOML file.

[[quotas]]                 # the most exact one counts: for a user, for a type, for all
user = "ada"               # left out: everybody
type = "h100"              # left out: every type
gpus = 8                   # at once; further requests wait for the user's own to end
waiting = 10               # requests that wait
long_share = 0.1           # of all GPUs of a type, for longer than 4 hours from now on
reserved_gpu_hours = 400   # of waiting requests, and what running ones have left
gpu_hours = 200            # used or reserved in any period
period_days = 7

[fair_share]               # left out: first come, first served
half_life_hours = 168      # what was used so long ago counts half

[[maintenance]]            # nobody is promised these nodes then
nodes = ["gpu-17"]         # or: type = "h100", for all nodes of it
from = 2030-01-01T08:00:00Z
to = 2030-01-01T12:00:00Z

[node_labels]              # what --node-label may ask for
nsight = ["true"]
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator, Sequence
from datetime import timedelta
from itertools import combinations
from pathlib import Path
from typing import Annotated

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, ValidationError

from gpudev.bootstrap.toml_lines import find_line
from gpudev.domain.catalogue import Catalogue, in_words
from gpudev.domain.errors import Invalid
from gpudev.domain.fair_share import FairShare
from gpudev.domain.maintenance import Maintenance, find_overlap
from gpudev.domain.names import NodeName
from gpudev.domain.quota import EVERYTHING, Quota, QuotaRule, Quotas
from gpudev.domain.sharing import ALIKE, SharingPolicy

_STRICT = ConfigDict(extra="forbid", frozen=True, strict=True)
_ALLOWED = {
    "user": "a user's name, or left out for everybody",
    "type": "a GPU type that is on offer, or left out for every type",
    "gpus": "a whole number, 0 or more",
    "waiting": "a whole number, 0 or more",
    "reserved_gpu_hours": "a number, 0 or more",
    "gpu_hours": "a number, 0 or more",
    "long_share": "a part, more than 0 and at most 1",
    "period_days": "a number of days, more than 0 and at most 366",
    "half_life_hours": "a number of hours, more than 0",
    "nodes": "a list of one or more names of nodes",
    "from": "a time with its offset, 2030-01-01T08:00:00Z for example",
    "to": "a time with its offset, later than `from`",
    "node_labels": 'labels with lists of their values, nsight = ["true"] for example',
}

_Count = Annotated[int, Field(ge=0)]


class _QuotaEntry(BaseModel):
    model_config = _STRICT

    user: str = Field(EVERYTHING, min_length=1)
    type: str = Field(EVERYTHING, min_length=1)
    gpus: _Count | None = None
    waiting: _Count | None = None
    reserved_gpu_hours: Annotated[float, Field(ge=0)] | None = None
    gpu_hours: Annotated[float, Field(ge=0)] | None = None
    period_days: float = Field(7, gt=0, le=366)
    long_share: Annotated[float, Field(gt=0, le=1)] | None = None

    def read(self) -> QuotaRule:
        period = timedelta(days=self.period_days)
        quota = Quota(
            self.gpus, self.waiting, self.gpu_hours, period, self.reserved_gpu_hours, self.long_share
        )
        return QuotaRule(self.user, self.type.lower(), quota)


class _FairShareEntry(BaseModel):
    model_config = _STRICT

    half_life_hours: float = Field(gt=0, le=24 * 366)

    def read(self) -> FairShare:
        return FairShare(timedelta(hours=self.half_life_hours))


class _MaintenanceEntry(BaseModel):
    model_config = _STRICT

    nodes: list[str] = []
    type: str = ""
    start: AwareDatetime = Field(alias="from")
    end: AwareDatetime = Field(alias="to")

    def read(self) -> Maintenance:
        return Maintenance(self.start, self.end, frozenset(map(NodeName, self.nodes)), self.type.lower())


class _File(BaseModel):
    model_config = _STRICT

    quotas: list[_QuotaEntry] = []
    fair_share: _FairShareEntry | None = None
    maintenance: list[_MaintenanceEntry] = []
    node_labels: dict[str, list[str]] = {}


class _Mistakes:
    """Says where in the file something is wrong, and what may stand there."""

    def __init__(self, path: Path, text: str) -> None:
        self._path = path
        self._text = text

    def refuse(self, place: Sequence[str | int], what: str, allowed: str) -> Invalid:
        return self.refuse_line(find_line(self._text, place), what, allowed)

    def refuse_line(self, line: int, what: str, allowed: str) -> Invalid:
        return Invalid(
            f"{self._path}, line {line}: {what}", hint=f"Allowed: {allowed}.", code="bad_policy_file"
        )

    def line_of(self, place: Sequence[str | int]) -> int:
        return find_line(self._text, place)


def read_policy(path: Path | None, catalogue: Catalogue) -> SharingPolicy:
    """`Invalid` names the file, the line and what may stand there."""
    if path is None:
        return ALIKE
    text = _read_text(path)
    mistakes = _Mistakes(path, text)
    content = _parse(text, mistakes)
    for mistake in _list_mistakes(content, catalogue, mistakes):
        raise mistake
    return SharingPolicy(
        quotas=Quotas(tuple(entry.read() for entry in content.quotas)),
        fair_share=content.fair_share.read() if content.fair_share else None,
        maintenance=tuple(entry.read() for entry in content.maintenance),
        node_labels={name: frozenset(values) for name, values in content.node_labels.items()},
    )


def _read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise Invalid(
            f"The policy file {path} cannot be read: {error}.",
            hint="Set GPU_DEV_POLICY_FILE to a TOML file, or leave it out.",
            code="bad_policy_file",
        ) from error


def _parse(text: str, mistakes: _Mistakes) -> _File:
    try:
        return _File.model_validate(tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        line, what = _line_in(str(error)), f"this is not TOML: {error}."
        raise mistakes.refuse_line(line, what, "TOML as in docs/howto/policy.md") from error
    except ValidationError as error:
        first = error.errors()[0]
        raise _describe(first["loc"], first["type"], first["input"], mistakes) from error


def _line_in(words: str) -> int:
    """The standard library tells it only in words: `... (at line 3, column 5)`."""
    _, _, rest = words.partition("at line ")
    number = rest.partition(",")[0]
    return int(number) if number.isdecimal() else 1


def _describe(place: tuple[int | str, ...], kind: str, value: object, mistakes: _Mistakes) -> Invalid:
    key = next((part for part in reversed(place) if isinstance(part, str)), "")
    if kind == "extra_forbidden":
        return mistakes.refuse(place, f'"{key}" is not known here.', _list_keys(place))
    if kind == "missing":
        return mistakes.refuse(place, f'"{key}" is missing.', _ALLOWED.get(key, _list_keys(place)))
    allowed = _ALLOWED.get(key) or _ALLOWED.get(str(place[0]), _list_keys(place))
    return mistakes.refuse(place, f"{key} = {value!r} is not possible.", allowed)


def _list_keys(place: tuple[int | str, ...]) -> str:
    models: dict[object, type[BaseModel]] = {
        "quotas": _QuotaEntry,
        "fair_share": _FairShareEntry,
        "maintenance": _MaintenanceEntry,
    }
    model = models.get(place[0], _File) if place else _File
    return in_words(field.alias or name for name, field in model.model_fields.items())


def _list_mistakes(content: _File, catalogue: Catalogue, mistakes: _Mistakes) -> Iterator[Invalid]:
    """What each value for itself allows, and all of them together do not."""
    yield from _list_bad_quotas(content.quotas, catalogue, mistakes)
    yield from _list_bad_windows(content.maintenance, catalogue, mistakes)
    for name, values in content.node_labels.items():
        if not values:
            yield mistakes.refuse(("node_labels", name), f"{name} has no values.", _ALLOWED["node_labels"])


def _list_bad_quotas(
    entries: Sequence[_QuotaEntry], catalogue: Catalogue, mistakes: _Mistakes
) -> Iterator[Invalid]:
    for number, entry in enumerate(entries):
        if entry.type != EVERYTHING and catalogue.find(entry.type) is None:
            yield _unknown_type(("quotas", number, "type"), entry.type, catalogue, mistakes)
    for (first, one), (second, other) in combinations(enumerate(entries), 2):
        if (one.user, one.type.lower()) == (other.user, other.type.lower()):
            where = mistakes.line_of(("quotas", first))
            what = f"user {one.user} and type {one.type} have a quota on line {where} already."
            yield mistakes.refuse(("quotas", second), what, "one [[quotas]] for each user and type")


def _list_bad_windows(
    entries: Sequence[_MaintenanceEntry], catalogue: Catalogue, mistakes: _Mistakes
) -> Iterator[Invalid]:
    for number, entry in enumerate(entries):
        place = ("maintenance", number)
        if bool(entry.nodes) == bool(entry.type):
            yield mistakes.refuse(place, "it is not clear which nodes.", "either nodes or type")
        if entry.type and catalogue.find(entry.type) is None:
            yield _unknown_type((*place, "type"), entry.type, catalogue, mistakes)
        if entry.end <= entry.start:
            what = f"it ends at {entry.end:%Y-%m-%d %H:%M %Z}, not after its beginning."
            yield mistakes.refuse((*place, "to"), what, _ALLOWED["to"])
    overlap = find_overlap(entry.read() for entry in entries)
    if overlap is not None:
        first, second = overlap
        where = mistakes.line_of(("maintenance", first))
        what = f"this maintenance overlaps with that of line {where} on the same nodes."
        yield mistakes.refuse(("maintenance", second), what, "one maintenance of a node at a time")


def _unknown_type(
    place: Sequence[str | int], name: str, catalogue: Catalogue, mistakes: _Mistakes
) -> Invalid:
    choices: Iterable[str] = catalogue.by_name
    return mistakes.refuse(place, f'there is no GPU type "{name}".', in_words(choices))
