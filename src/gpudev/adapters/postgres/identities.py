"""Which user an identity of AWS is."""

from __future__ import annotations

from gpudev.adapters.postgres.pool import Database
from gpudev.adapters.postgres.queries import load_queries
from gpudev.domain.identity import Identity
from gpudev.domain.names import UserId
from gpudev.ports.users import User

_SQL = load_queries("identities")


class PostgresIdentities:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def admit(self, identity: Identity) -> User | None:
        row = await self._database.fetch_row(
            *_SQL.bind(
                "admit",
                username=identity.username,
                account=identity.account,
                role=identity.role,
                name=identity.name,
                arn=identity.arn,
            )
        )
        return User(UserId(row["user_id"]), row["username"], row["is_active"]) if row else None

    async def find_arn(self, user_id: UserId) -> str | None:
        arn: str | None = await self._database.fetch_value(*_SQL.bind("find_arn", user_id=user_id))
        return arn
