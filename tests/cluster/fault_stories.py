"""For each step of a controller's plan, a reservation whose life has that step in it.

The steps are those of the code: one that is new and has no story here fails, when the tests are collected.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, get_args

import asyncpg
import pytest

from gpudev.app.turns.engine import snake_case
from gpudev.domain.plans.turn import (
    CreateServer,
    DeleteServer,
    DiscardPortSlot,
    DriveAdmission,
    KeepJobOutput,
    ListHome,
    LookAgain,
    Note,
    Record,
    ReservationAction,
    SettleOperations,
    Tell,
)
from tests.support.kubernetes.access import Access
from tests.support.machine import Machine, wait_for
from tests.support.second_controller import controller_environment

LIFE = ("submitted", "placed", "active", "cancelled", "cleaned")
_SHORTEST_WITH_A_WARNING = "0.0845"
"""Hours: a little more than five minutes, so that the last warning comes seconds after the start."""
_FORGET = """
WITH forgotten AS (
    UPDATE reservation_records SET created_at = clock_timestamp() - interval '6 minutes',
        last_updated = clock_timestamp() - interval '6 minutes', last_queue_update = NULL
    WHERE reservation_id = $1 AND driven_at IS NULL
    RETURNING reservation_id
)
SELECT pg_notify('gpu_dev_turn', 'reservation ' || reservation_id) FROM forgotten"""
"""As if admission had not looked at it for six minutes. It may look at it just now: then this comes again."""


@dataclass(frozen=True, slots=True)
class Story:
    begin: Callable[[Machine, Access], str]
    """Until it is active; its id."""
    go_on: Callable[[Machine, str], None] = lambda _machine, _reservation: None
    come_back: Callable[[Machine, str], None] = lambda _machine, _reservation: None
    """After it is gone."""
    life: tuple[str, ...] = LIFE
    needs_disk: bool = False
    """It is told in `test_disks`, where there is a storage."""


def _reserve(machine: Machine, _access: Access) -> str:
    return machine.reserve("-t", "h100", "-g", "2")


def _reserve_with_disk(machine: Machine, _access: Access) -> str:
    return machine.reserve("-t", "h100", "--disk", "survives")


def _reserve_shortly(machine: Machine, _access: Access) -> str:
    return machine.reserve("-t", "h100", "--hours", _SHORTEST_WITH_A_WARNING)


def _be_warned(machine: Machine, reservation: str) -> None:
    wait_for(lambda: "WARN_EXPIRES_IN_5MIN" in machine.ssh(reservation, "ls").stdout, "the warning")


def _run_a_command(machine: Machine, reservation: str) -> None:
    """As the runner of `submit` does: what it writes goes to this file."""
    folder = f"submit/{reservation[:8]}/run"
    assert machine.ssh(reservation, f"mkdir -p {folder} && echo begun > {folder}/output").returncode == 0


def _cancel_again(machine: Machine, reservation: str) -> None:
    with machine.client() as client:
        client.cancel(reservation)


def _wait_forgotten(machine: Machine, access: Access) -> str:
    access.cordon("node-b")
    try:
        reservation = machine.submit("-t", "a100")
        wait_for(lambda: machine.show(reservation)["status"] == "queued", "its place in the queue")
        wait_for(lambda: not asyncio.run(_forget(machine, reservation)), "somebody to drive it")
    finally:
        access.uncordon("node-b")
    wait_for(lambda: machine.show(reservation)["status"] == "active", "the node's return")
    return reservation


async def _forget(machine: Machine, reservation: str) -> bool:
    """False if somebody drives it."""
    connection = await asyncpg.connect(controller_environment(machine)["GPU_DEV_DATABASE_URL"])
    try:
        return bool(await connection.fetch(_FORGET, reservation))
    finally:
        await connection.close()


_ORDINARY = Story(_reserve)
_WARNED = Story(_reserve_shortly, _be_warned, life=(*LIFE[:3], "warned", *LIFE[3:]))
_FORGOTTEN = Story(_wait_forgotten, life=(LIFE[0], "queued", *LIFE[1:]))

STORIES: dict[type[ReservationAction], Story] = {
    CreateServer: _ORDINARY,
    DeleteServer: _ORDINARY,
    DiscardPortSlot: _ORDINARY,
    Record: _ORDINARY,
    LookAgain: _ORDINARY,
    Note: _WARNED,
    Tell: _WARNED,
    SettleOperations: Story(_reserve, come_back=_cancel_again),
    DriveAdmission: _FORGOTTEN,
    KeepJobOutput: Story(_reserve, _run_a_command),
    ListHome: Story(_reserve_with_disk, needs_disk=True),
}


@dataclass(frozen=True, slots=True)
class FaultPoint:
    when: str
    action: type[ReservationAction]
    story: Story

    @property
    def name(self) -> str:
        return f"{self.when}_{snake_case(self.action.__name__)}"


def _list_points(*, needs_disk: bool) -> list[Any]:
    return [
        pytest.param(FaultPoint(when, action, STORIES[action]), id=f"{when}_{snake_case(action.__name__)}")
        for action in get_args(ReservationAction)
        for when in ("before", "after")
        if STORIES[action].needs_disk is needs_disk
    ]


FAULT_POINTS = _list_points(needs_disk=False)
DISK_FAULT_POINTS = _list_points(needs_disk=True)
