"""The first start: making the data folder, all of it or nothing.

Everything happens in a folder with another name that is renamed at the end, so a kill at any moment leaves
either no data folder or a complete one.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from gpudev.adapters.local.database.child_process import ChildProcess
from gpudev.adapters.local.database.postgres_folder import PostgresFolder
from gpudev.adapters.local.database.postgres_programs import (
    ENVIRONMENT,
    Account,
    find_programs,
    initial_account,
)
from gpudev.domain.errors import StoreUnavailable

ROLE = "gpudev"
"""The owner of everything, as whom migrations connect."""
APP_ROLE = "gpudev_app"
"""As whom the service connects. Migrations make it."""
# The same order and the same upper case on every machine, whatever languages are installed there.
_LOCALE = ("--encoding=UTF8", "--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8")
_ACCESS = ("--auth-local=trust", "--auth-host=scram-sha-256")


async def make_data(folder: PostgresFolder, account: Account, lock: int, *, durable: bool) -> None:
    """Make `folder.data` for `account`. `lock` is kept by the programs while they run."""
    new = folder.new_data
    if new.exists():
        shutil.rmtree(new)
    new.mkdir(mode=0o700)
    maker = initial_account(account)
    maker.own(new)
    sync = () if durable else ("--no-sync",)
    command = (
        "initdb",
        f"--pgdata={new}",
        f"--username={ROLE}",
        *_LOCALE,
        *_ACCESS,
        *sync,
        "--no-instructions",
    )
    await _run(folder, maker, command, lock)
    if maker != account:
        account.own_tree(new)
    new.rename(folder.data)
    if durable:
        _sync(folder.path)


async def _run(folder: PostgresFolder, account: Account, command: tuple[str, ...], lock: int) -> None:
    program, *arguments = command
    mark = folder.log_size()
    with folder.log.open("ab") as log:
        child = ChildProcess(
            [os.fspath(find_programs() / program), *arguments],
            prefix=account.prefix,
            output=log,
            environment=ENVIRONMENT,
            inherit=(lock,),
        )
    async with child:
        status = await child.wait()
    if status != 0:
        raise StoreUnavailable(
            "database_not_made",
            program=program,
            status=status,
            words=folder.log_since(mark),
            log=str(folder.log),
        )


def _sync(folder: Path) -> None:
    """Make the rename survive a loss of power."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
