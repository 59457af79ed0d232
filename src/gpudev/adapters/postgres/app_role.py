"""The role that the processes of the service connect as: it owns nothing, and only reads and writes rows.

Migrations run as the owner of the tables, and give this role its rights at the end, each time.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from importlib.resources import files

import asyncpg

from gpudev.domain.errors import Conflict

_EXISTS = "SELECT EXISTS (SELECT FROM pg_roles WHERE rolname = $1)"
_CREATE = "SELECT format('CREATE ROLE %I LOGIN', $1::text)"
_WITH_PASSWORD = "SELECT format('CREATE ROLE %I LOGIN PASSWORD %L', $1::text, $2::text)"  # noqa: S105  # a statement
_IS_ADMIN_OF_IT = """
SELECT (rolsuper OR rolcreaterole) AND pg_has_role(current_user, $1::name, 'MEMBER WITH ADMIN OPTION')
FROM pg_roles WHERE rolname = current_user
"""
_SET_PASSWORD = "SELECT format('ALTER ROLE %I PASSWORD %L', $1::text, $2::text)"  # noqa: S105  # a statement
_CHOOSE = "SELECT set_config('gpu_dev.app_role', $1, false)"


@dataclass(frozen=True, slots=True)
class AppRole:
    name: str
    password: str = field(default="", repr=False)
    """Set on the role each time, so that a changed password is in force after the next migration."""


async def grant(connection: asyncpg.Connection, role: AppRole) -> None:
    """Make the role, if it is not there, and let it do what the service does, and nothing else.

    A role that somebody else made, an administrator or an operator of Kubernetes, keeps its password.
    """
    if not await connection.fetchval(_EXISTS, role.name):
        await _create(connection, role)
    elif role.password and await connection.fetchval(_IS_ADMIN_OF_IT, role.name):
        await connection.execute(await connection.fetchval(_SET_PASSWORD, role.name, role.password))
    await connection.execute(_CHOOSE, role.name)
    sql = files(__package__).joinpath("sql", "grants", "app_role.sql").read_text(encoding="utf-8")
    await connection.execute(sql)


async def _create(connection: asyncpg.Connection, role: AppRole) -> None:
    values = (_WITH_PASSWORD, role.name, role.password) if role.password else (_CREATE, role.name)
    try:
        async with connection.transaction():
            await connection.execute(await connection.fetchval(*values))
    except (asyncpg.DuplicateObjectError, asyncpg.UniqueViolationError):
        return  # roles belong to all databases of a server: another one's migration was first
    except asyncpg.InsufficientPrivilegeError as error:
        raise Conflict("app_role_missing", code="no_app_role", role=role.name) from error
