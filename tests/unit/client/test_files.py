"""Files that only their owner may read, written whole or not at all."""

from __future__ import annotations

import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from gpudev.client.files import write_private


def test_a_private_file_is_its_owners_alone(tmp_path: Path) -> None:
    file = tmp_path / "sub" / "key"
    write_private(file, "secret")
    assert file.read_text() == "secret"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_threads_that_write_at_once_do_not_disturb_each_other(tmp_path: Path) -> None:
    file = tmp_path / "key"
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: write_private(file, str(number) * 1000), range(64)))
    text = file.read_text()
    assert len(set(text)) <= 2
    assert [entry.name for entry in tmp_path.iterdir()] == ["key"]
