"""The way of one reservation through the code, by hand: from the command to the row, and from the row to SSH.

Each line is a module and those of its functions through which the reservation passes, in order. A test finds
lines that do not fit the code any more. `BEFORE` is the way at commit 0980a57, to compare with.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import NamedTuple


class Path(NamedTuple):
    shapes: tuple[str, ...]
    """The types in which a request is kept on its way, each as `module:type`; the last is the row."""
    to_row: tuple[str, ...]
    to_ssh: tuple[str, ...]


BEFORE = Path(
    shapes=(
        "cli/commands/reserve.py:Wish",
        "cli/choices.py:Choice",
        "client/asking.py:Options",
        "wire/jobs.py:SubmitRequest",
        "app/reserve.py:ReserveRequest",
        "domain/preview.py:Wish",
        "domain/reservation.py:Reservation",
        "adapters/postgres/reservations.py:_submitted_values",
    ),
    to_row=(
        "cli/commands/reserve.py:command,_reserve,_choose",
        "cli/choices.py:choose",
        "cli/commands/reserve.py:_request",
        "client/asking.py:build_request",
        "client/session.py:reserve,_post,_call",
        "client/http.py:send",
        "api/submit.py:submit,read_request",
        "app/reserve.py:__call__,_draft,read_wish,_submit,_write",
        "adapters/postgres/reservations.py:submit,_submitted_values,_home_values",
    ),
    to_ssh=(
        "app/controllers/run.py:_dispatch,_admit",
        "app/controllers/admission.py:turn",
        "domain/plans/admission.py:plan_admission",
        "app/controllers/loop.py:wake,_take,_guarded_turn",
        "app/controllers/reservations.py:turn",
        "adapters/postgres/reservations.py:claim",
        "domain/plans/reservation.py:plan_reservation",
        "domain/plans/start.py:plan_preparing",
        "app/controllers/execute.py:execute,_do,_do_on_cluster",
        "adapters/local/cluster.py:create_server,_create_new",
        "adapters/local/new_server.py:draw_up",
        "adapters/local/upkeep.py:begin,_run,_keep_running,_adopt_or_start,_start",
        "adapters/local/devserver/launcher.py:start,_send",
        "adapters/local/devserver/zygote.py:take_order",
        "adapters/local/devserver/keeper.py:keep,_keep_sandboxed,_serve",
        "adapters/local/devserver/devserver.py:serve",
    ),
)
NOW = Path(
    shapes=(
        "wire/jobs.py:SubmitRequest",
        "app/reservations/submission.py:ReserveRequest",
        "domain/reservation.py:Reservation",
        "adapters/postgres/reservations.py:_submit",
    ),
    to_row=(
        "cli/commands/reserve.py:command,_reserve,_draft",
        "cli/choices.py:choose",
        "client/submit_request.py:complete_request",
        "cli/commands/reserve.py:_send",
        "client/session.py:reserve,_post,_call",
        "client/http.py:send",
        "api/submit.py:submit,read_request",
        "app/reservations/__init__.py:submit",
        "app/reservations/submission.py:submit,_draft,check_spec,_submit,_write",
        "adapters/postgres/reservations.py:submit,_submit",
    ),
    to_ssh=(
        "app/controllers/run.py:_dispatch,_admit",
        "app/controllers/admission.py:turn",
        "domain/plans/admission.py:plan_admission",
        "app/turns/loop.py:wake,_take,_guarded_turn",
        "app/turns/engine.py:turn,_take,_take_rounds,_execute",
        "adapters/postgres/reservations.py:claim",
        "domain/plans/reservation.py:plan_reservation",
        "domain/plans/start.py:plan_preparing",
        "app/controllers/reservation_executor.py:execute,_do_on_cluster",
        "adapters/local/cluster.py:create_server,_create_new",
        "adapters/local/upkeep.py:begin,_run,_keep_running,_adopt_or_start,_start",
        "adapters/local/devserver/launcher.py:start,_send",
        "adapters/local/devserver/zygote.py:take_order",
        "adapters/local/devserver/keeper.py:keep,_keep_sandboxed,_serve",
        "adapters/local/devserver/devserver.py:serve",
    ),
)


def list_missing(path: Path, trees: Mapping[str, ast.Module]) -> list[str]:
    """What the path names and the code does not have."""
    return [
        f"{file}:{name}"
        for line in (*path.shapes, *path.to_row, *path.to_ssh)
        for file, _, names in [line.partition(":")]
        for name in names.split(",")
        if file not in trees or name not in _list_names(trees[file])
    ]


def count_steps(lines: tuple[str, ...]) -> int:
    return sum(line.count(",") + 1 for line in lines)


def _list_names(tree: ast.Module) -> set[str]:
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return {node.name for node in ast.walk(tree) if isinstance(node, kinds)}
