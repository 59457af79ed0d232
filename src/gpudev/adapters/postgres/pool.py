"""Connections: a pool that comes back by itself after a database restart, and errors in our own words."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from typing import Any, Self

import asyncpg
from asyncpg.pool import PoolConnectionProxy

from gpudev.domain.errors import StoreUnavailable
from gpudev.texts.fact import Fact

Connection = asyncpg.Connection | PoolConnectionProxy
Row = asyncpg.Record

_LOST = (
    OSError,
    asyncio.TimeoutError,
    asyncpg.PostgresConnectionError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    # Whole classes of PostgreSQL's own: out of something, stopped by an operator, rolled back by a rival.
    asyncpg.InsufficientResourcesError,
    asyncpg.OperatorInterventionError,
    asyncpg.TransactionRollbackError,
    asyncpg.ObjectNotInPrerequisiteStateError,
    asyncpg.InvalidAuthorizationSpecificationError,
    asyncpg.IdleInTransactionSessionTimeoutError,
    asyncpg.ReadOnlySQLTransactionError,
)

_SESSION = {
    # Each statement is planned once a connection. Most take longer to plan than to run, and all are written
    # so that one plan fits every value.
    "plan_cache_mode": "force_generic_plan",
    # A replica that is frozen in the middle of a transaction gives its locks up again.
    "idle_in_transaction_session_timeout": "30s",
    "tcp_keepalives_idle": "10",
    "tcp_keepalives_interval": "5",
    "tcp_keepalives_count": "3",
}


@contextmanager
def translated_errors() -> Iterator[None]:
    """A database that does not answer is `StoreUnavailable`; everything else stays what it is."""
    try:
        yield
    except _LOST as error:
        words = str(error) or type(error).__name__
        raise StoreUnavailable("database_silent", words=words) from error


class Database:
    """A lazily connected pool. Sessions keep no state between uses, so nothing is reset between them."""

    def __init__(
        self,
        dsn: str,
        *,
        max_connections: int = 10,
        connect_timeout: float = 60,
        command_timeout: float = 30,
    ) -> None:
        self.dsn = dsn
        self._pool: asyncpg.Pool = asyncpg.create_pool(
            dsn,
            min_size=0,
            max_size=max_connections,
            timeout=connect_timeout,
            command_timeout=command_timeout,
            server_settings=_SESSION,
            init=_prepare_connection,
            reset=_keep_as_is,
        )

    async def open(self) -> None:
        with translated_errors():
            await self._pool

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        try:
            await asyncio.wait_for(self._pool.close(), timeout=5)
        except TimeoutError:
            self._pool.terminate()

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[Connection]:
        with translated_errors():
            async with self._pool.acquire() as connection:
                yield connection

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Connection]:
        async with self.connection() as connection, connection.transaction():
            yield connection

    async def forget_row_types(self, error: asyncpg.DatatypeMismatchError) -> StoreUnavailable:
        """A migration has changed a table since connections learned the type of its rows: use new ones."""
        await self._pool.expire_connections()
        return StoreUnavailable("database_silent", words=str(error))

    async def fetch(self, query: str, *values: Any, as_kind: type[Row] = Row) -> list[Row]:
        with translated_errors():
            return await self._pool.fetch(query, *values, record_class=as_kind)

    async def fetch_row(self, query: str, *values: Any) -> Row | None:
        with translated_errors():
            return await self._pool.fetchrow(query, *values)

    async def fetch_value(self, query: str, *values: Any) -> Any:
        with translated_errors():
            return await self._pool.fetchval(query, *values)

    async def execute(self, query: str, *values: Any) -> None:
        with translated_errors():
            await self._pool.execute(query, *values)


async def connect(dsn: str) -> asyncpg.Connection:
    """A connection outside the pool, for what needs one of its own: migrations and LISTEN."""
    with translated_errors():
        return await asyncpg.connect(dsn, timeout=5, server_settings=_SESSION)


async def _prepare_connection(connection: Connection) -> None:
    # In binary form, in which alone it can be part of a row that is a parameter.
    await connection.set_type_codec(
        "jsonb", schema="pg_catalog", encoder=_encode_json, decoder=_decode_json, format="binary"
    )


_JSONB_VERSION = b"\x01"
_EMPTY_OBJECT = _JSONB_VERSION + b"{}"
_READ_JSON = json.JSONDecoder().decode


def _decode_json(stored: bytes) -> object:
    # Most labels and variables of the environment are empty.
    return {} if stored == _EMPTY_OBJECT else _READ_JSON(stored[len(_JSONB_VERSION) :].decode())


def _encode_part(value: object) -> object:
    if isinstance(value, Fact):
        return value.as_json()
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(type(value).__name__)


_JSON = json.JSONEncoder(default=_encode_part)
"""Made once: `json.dumps` with a default would make one for each value."""


def _encode_json(value: object) -> bytes:
    return _JSONB_VERSION + _JSON.encode(value).encode()


async def _keep_as_is(_connection: Connection) -> None:
    """The default reset costs a round trip a use; we set nothing that would have to be undone."""
