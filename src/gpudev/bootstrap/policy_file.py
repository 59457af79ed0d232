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

A mistake is reported with its line. The parser of the standard library tells lines only of what is not TOML
at all. Tables and keys at the beginning of a line are enough for files that people write by hand; of what
is inside a value, the line of the value is told.
"""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import timedelta
from itertools import combinations
from pathlib import Path
from typing import Annotated

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, ValidationError

from gpudev.domain.catalogue import Catalogue
from gpudev.domain.errors import Invalid
from gpudev.domain.names import NodeName
from gpudev.domain.policy import ALIKE, FairShare, Maintenance, SharingPolicy, find_overlap
from gpudev.domain.quota import EVERYTHING, Quota, QuotaRule, Quotas
from gpudev.texts.fact import Fact, fact

_TABLE = re.compile(r"\s*(\[\[?)\s*([^\]]+?)\s*\]")
_KEY = re.compile(r"\s*(\"[^\"]*\"|'[^']*'|[A-Za-z0-9_-]+)\s*=")

_Place = tuple[str | int, ...]


def find_line(text: str, path: Sequence[str | int]) -> int:
    """The line of the most exact part of the path that stands at the beginning of one; 1 if none does."""
    lines = _list_places(text)
    wanted = tuple(path)
    while wanted and wanted not in lines:
        wanted = wanted[:-1]
    return lines.get(wanted, 1)


def _list_places(text: str) -> dict[_Place, int]:
    places: dict[_Place, int] = {}
    table: _Place = ()
    counts: Counter[str] = Counter()
    for number, line in enumerate(text.splitlines(), start=1):
        if header := _TABLE.match(line):
            table = _table_path(header[2], counts, is_list=header[1] == "[[")
            places.setdefault(table, number)
        elif key := _KEY.match(line):
            places.setdefault((*table, key[1].strip("\"'")), number)
    return places


def _table_path(name: str, counts: Counter[str], *, is_list: bool) -> _Place:
    parts = tuple(part.strip().strip("\"'") for part in name.split("."))
    if not is_list:
        return parts
    counts[name] += 1
    return (*parts, counts[name] - 1)


_STRICT = ConfigDict(extra="forbid", frozen=True, strict=True)

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


def _keys_of(model: type[BaseModel]) -> list[str]:
    return [field.alias or name for name, field in model.model_fields.items()]


_EXPLAINED = frozenset(
    {"node_labels", *_keys_of(_QuotaEntry), *_keys_of(_FairShareEntry), *_keys_of(_MaintenanceEntry)}
)
"""Keys of which the texts say what values they take."""


class _Mistakes:
    """Says where in the file something is wrong, and what may stand there."""

    def __init__(self, path: Path, text: str) -> None:
        self._path = path
        self._text = text

    def refuse(self, place: Sequence[str | int], problem: Fact, allowed: Fact) -> Invalid:
        return self.refuse_line(find_line(self._text, place), problem, allowed)

    def refuse_line(self, line: int, problem: Fact, allowed: Fact) -> Invalid:
        return Invalid(
            "bad_policy_line",
            path=str(self._path),
            line=line,
            problem=problem,
            allowed=allowed,
            code="bad_policy_file",
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
            "policy_file_not_read", path=str(path), words=str(error), code="bad_policy_file"
        ) from error


def _parse(text: str, mistakes: _Mistakes) -> _File:
    try:
        return _File.model_validate(tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        problem = fact("policy_is_not_toml", words=str(error))
        raise mistakes.refuse_line(_line_in(str(error)), problem, fact("policy_takes_toml")) from error
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
        return mistakes.refuse(place, fact("policy_key_unknown", key=key), _keys_at(place))
    if kind == "missing":
        return mistakes.refuse(place, fact("policy_key_missing", key=key), _allowed_at(place, (key,)))
    problem = fact("policy_value_not_possible", key=key, value=repr(value))
    return mistakes.refuse(place, problem, _allowed_at(place, (key, str(place[0]))))


def _allowed_at(place: tuple[int | str, ...], keys: Iterable[str]) -> Fact:
    """The values of the first key that is explained; else the keys that may be there."""
    explained = next((key for key in keys if key in _EXPLAINED), None)
    return _value_of(explained) if explained else _keys_at(place)


def _value_of(key: str) -> Fact:
    return fact("policy_takes_value_of", key=key)


def _keys_at(place: tuple[int | str, ...]) -> Fact:
    models: dict[object, type[BaseModel]] = {
        "quotas": _QuotaEntry,
        "fair_share": _FairShareEntry,
        "maintenance": _MaintenanceEntry,
    }
    model = models.get(place[0], _File) if place else _File
    return fact("policy_takes_one_of", choices=_keys_of(model))


def _list_mistakes(content: _File, catalogue: Catalogue, mistakes: _Mistakes) -> Iterator[Invalid]:
    """What each value for itself allows, and all of them together do not."""
    yield from _list_bad_quotas(content.quotas, catalogue, mistakes)
    yield from _list_bad_windows(content.maintenance, catalogue, mistakes)
    for name, values in content.node_labels.items():
        if not values:
            problem = fact("policy_label_without_values", name=name)
            yield mistakes.refuse(("node_labels", name), problem, _value_of("node_labels"))


def _list_bad_quotas(
    entries: Sequence[_QuotaEntry], catalogue: Catalogue, mistakes: _Mistakes
) -> Iterator[Invalid]:
    for number, entry in enumerate(entries):
        if entry.type != EVERYTHING and catalogue.find(entry.type) is None:
            yield _unknown_type(("quotas", number, "type"), entry.type, catalogue, mistakes)
    for (first, one), (second, other) in combinations(enumerate(entries), 2):
        if (one.user, one.type.lower()) == (other.user, other.type.lower()):
            where = mistakes.line_of(("quotas", first))
            problem = fact("policy_quota_twice", user=one.user, gpu_type=one.type, line=where)
            yield mistakes.refuse(("quotas", second), problem, fact("policy_takes_one_quota"))


def _list_bad_windows(
    entries: Sequence[_MaintenanceEntry], catalogue: Catalogue, mistakes: _Mistakes
) -> Iterator[Invalid]:
    for number, entry in enumerate(entries):
        place = ("maintenance", number)
        if bool(entry.nodes) == bool(entry.type):
            problem = fact("policy_window_without_nodes")
            yield mistakes.refuse(place, problem, fact("policy_takes_nodes_or_type"))
        if entry.type and catalogue.find(entry.type) is None:
            yield _unknown_type((*place, "type"), entry.type, catalogue, mistakes)
        if entry.end <= entry.start:
            problem = fact("policy_window_without_length", end=entry.end)
            yield mistakes.refuse((*place, "to"), problem, _value_of("to"))
    overlap = find_overlap(entry.read() for entry in entries)
    if overlap is not None:
        first, second = overlap
        where = mistakes.line_of(("maintenance", first))
        problem = fact("policy_windows_overlap", line=where)
        yield mistakes.refuse(("maintenance", second), problem, fact("policy_takes_one_window"))


def _unknown_type(
    place: Sequence[str | int], name: str, catalogue: Catalogue, mistakes: _Mistakes
) -> Invalid:
    choices = fact("policy_takes_one_of", choices=list(catalogue.by_name))
    return mistakes.refuse(place, fact("policy_type_unknown", name=name), choices)
