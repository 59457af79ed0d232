"""Records survive being written and read, whole or not at all."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from gpudev.adapters.local.allotment import Given, draw_up
from gpudev.adapters.local.gpus import LocalGpu
from gpudev.adapters.local.processes.identity import ProcessIdentity
from gpudev.adapters.local.record import Record, ServerProcesses, record_from_json, record_to_json
from gpudev.adapters.local.records import Records
from gpudev.adapters.local.sandbox.isolation import Isolation
from gpudev.domain.errors import Defect
from gpudev.domain.names import NodeName
from gpudev.texts.fact import Fact, fact
from tests.support.local_cluster import make_spec


@pytest.fixture
def records(tmp_path: Path) -> Records:
    records = Records(tmp_path)
    records.make_directories()
    return records


def test_where_no_server_was_ever_made_nothing_is_left_over(tmp_path: Path) -> None:
    """Dev servers that are pods have no folders here."""
    records = Records(tmp_path / "never")
    records.sweep()
    assert records.list_leftovers() == ()


def make_record() -> Record:
    gpus = (LocalGpu("simulated-t4-0-0"), LocalGpu("GPU-1", ("/dev/nvidia1",), is_simulated=False))
    return Record(make_spec(FOO="bar"), "uid-1", is_placed=True, gpus=gpus, port=30001, host_key="secret")


def test_a_record_is_read_as_it_was_written(records: Records) -> None:
    record = make_record()
    records.files_of(record.key).write_record(record)
    assert records.list_records() == (record,)


def test_why_it_was_not_placed_is_kept(records: Records) -> None:
    why = fact("node_too_full", node="t4-0", free=0, slots=4, wanted=1)
    record = Record(make_spec(), "uid-1", is_placed=False, detail=why)
    records.files_of(record.key).write_record(record)
    assert records.list_records() == (record,)


@pytest.mark.parametrize("words, detail", [("", None), ("No room.", fact("words", words="No room."))])
def test_the_words_of_an_earlier_version_are_kept(words: str, detail: Fact | None) -> None:
    record = make_record()
    assert record_from_json({**record_to_json(record), "detail": words}) == replace(record, detail=detail)


def test_the_members_of_a_gang_are_written_down_apart(records: Records) -> None:
    spec = make_spec(gpus=8, nodes=(NodeName("t4-0"), NodeName("t4-1")))
    given = Given(((LocalGpu("one"),), (LocalGpu("two"),)))
    members = draw_up(spec, given, (30001, 30002))
    for member in members:
        records.files_of(member.key).write_record(member)
    assert records.list_records() == members
    assert [(member.key, member.node, member.port) for member in members] == [
        (spec.reservation_id[:8], "t4-0", 30001),
        (f"{spec.reservation_id[:8]}-1", "t4-1", 30002),
    ]
    assert len({member.uid for member in members}) == 1
    assert len({member.host_key for member in members}) == 2
    records.set_aside(members[1])
    assert records.list_records() == members[:1]


def test_a_record_is_replaced_and_nothing_else_is_left(records: Records) -> None:
    record = make_record()
    files = records.files_of(record.key)
    files.write_record(record)
    files.write_record(replace(record, has_answered=True))
    assert files.find_record() == replace(record, has_answered=True)
    assert [path.name for path in files.directory.iterdir()] == ["record.json"]


def test_records_are_for_their_owner_alone(records: Records) -> None:
    record = make_record()
    files = records.files_of(record.key)
    files.write_record(record)
    assert files.directory.stat().st_mode & 0o777 == 0o700
    assert (files.directory / "record.json").stat().st_mode & 0o777 == 0o600


def test_a_process_is_read_as_it_was_written(records: Records) -> None:
    record = make_record()
    files = records.files_of(record.key)
    files.write_record(record)
    assert files.find_processes() is None
    identities = ProcessIdentity(1, 2, "boot"), ProcessIdentity(3, 4, "boot")
    process = ServerProcesses(*identities, Isolation.BUBBLEWRAP)
    files.write_processes(process)
    assert files.find_processes() == process


def test_a_spoiled_record_is_a_defect_that_names_the_file(records: Records) -> None:
    record = make_record()
    files = records.files_of(record.key)
    files.write_record(record)
    (files.directory / "record.json").write_text("{}")
    with pytest.raises(Defect, match=r"record\.json"):
        records.list_records()


def test_a_directory_without_a_record_is_no_server(records: Records) -> None:
    records.files_of("0badcafe").directory.mkdir()
    assert records.list_records() == ()


def test_what_is_set_aside_is_gone_and_then_swept(records: Records, tmp_path: Path) -> None:
    record = make_record()
    files = records.files_of(record.key)
    files.write_record(record)
    closed = files.workspace / "closed"
    closed.mkdir(parents=True)
    (closed / "file").touch()
    closed.chmod(0)
    records.set_aside(record)
    assert records.list_records() == ()
    records.sweep()
    assert list((tmp_path / "servers").iterdir()) == []
