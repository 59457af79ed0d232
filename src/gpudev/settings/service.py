"""The service itself: its database, its addresses, its process."""

from __future__ import annotations

import socket
from datetime import timedelta
from pathlib import Path
from typing import Literal
from urllib.parse import quote, unquote, urlsplit

from pydantic import Field
from pydantic_settings import BaseSettings

from gpudev.settings.reading import CONFIG


class DatabaseSettings(BaseSettings):
    """PostgreSQL: one address in `GPU_DEV_DATABASE_URL`, or its parts in `POSTGRES_*`."""

    model_config = CONFIG

    url: str = Field("", validation_alias="GPU_DEV_DATABASE_URL")
    """Address of the database, `postgresql://user:password@host:port/name`. Replaces the parts below."""
    host: str = Field("localhost", validation_alias="POSTGRES_HOST")
    """Host of the database."""
    port: int = Field(5432, validation_alias="POSTGRES_PORT")
    """Port of the database."""
    user: str = Field("gpudev", validation_alias="POSTGRES_USER")
    """User to connect as. It needs to own nothing: migrations give it the rights that it needs."""
    password: str = Field("", validation_alias="POSTGRES_PASSWORD")
    """Password of that user."""
    owner_url: str = Field("", validation_alias="GPU_DEV_DATABASE_OWNER_URL")
    """Address of the same database for migrations, as the owner of the tables. Replaces the two below.
    Without an owner, the user above is the owner."""
    owner: str = Field("", validation_alias="POSTGRES_OWNER_USER")
    """The owner of the tables, as whom migrations connect."""
    owner_password: str = Field("", validation_alias="POSTGRES_OWNER_PASSWORD")
    """Password of the owner."""
    name: str = Field("gpudev", validation_alias="POSTGRES_DB")
    """Name of the database."""
    replica_url: str = Field("", validation_alias="GPU_DEV_DATABASE_REPLICA_URL")
    """Address of a streaming replica. Lists of ended reservations are read from it while it answers."""
    max_connections: int = Field(10, validation_alias="GPU_DEV_DATABASE_MAX_CONNECTIONS", ge=2)
    """Most connections that one process opens, the one that listens aside."""

    @property
    def dsn(self) -> str:
        return self.url or self._address(self.user, self.password)

    @property
    def owner_dsn(self) -> str:
        """Where migrations connect to."""
        if self.owner_url or not self.owner:
            return self.owner_url or self.dsn
        return self._address(self.owner, self.owner_password)

    @property
    def app_login(self) -> tuple[str, str] | None:
        """Name and password of the user who does not own the tables; None if there is no such user."""
        if self.owner_dsn == self.dsn:
            return None
        parts = urlsplit(self.dsn)
        return unquote(parts.username or self.user), unquote(parts.password or "")

    def _address(self, user: str, password: str) -> str:
        login = f"{quote(user)}:{quote(password)}" if password else quote(user)
        return f"postgresql://{login}@{self.host}:{self.port}/{quote(self.name)}"


class ApiSettings(BaseSettings):
    """The HTTP service."""

    model_config = CONFIG

    host: str = Field("127.0.0.1", validation_alias="GPU_DEV_API_HOST")
    """Address to listen on."""
    port: int = Field(8321, validation_alias="GPU_DEV_API_PORT")
    """Port to listen on."""
    socket_fd: int = Field(-1, validation_alias="GPU_DEV_API_FD")
    """Set by `gpu-dev up`: descriptor of a socket that listens already; replaces host and port."""
    unix_socket_fd: int = Field(-1, validation_alias="GPU_DEV_API_UNIX_FD")
    """Set by `gpu-dev up`: descriptor of a unix socket that listens already, for the owner's own commands."""
    workers: int = Field(1, validation_alias="GPU_DEV_API_WORKERS", ge=1, le=64)
    """How many processes serve the API on its one socket. Each opens database connections of its own."""
    metrics_port: int = Field(0, validation_alias="GPU_DEV_METRICS_PORT")
    """Port for Prometheus metrics of all processes that share `PROMETHEUS_MULTIPROC_DIR`; 0 turns it off."""
    metrics_dir: Path | None = Field(None, validation_alias="PROMETHEUS_MULTIPROC_DIR")
    """Folder in which processes share their metrics. Several workers make one of their own without it."""
    key_ttl_hours: int = Field(2, validation_alias="API_KEY_TTL_HOURS", ge=1, le=168)
    """How long an API key lives, in hours; never longer than its login."""
    login_hours: float = Field(24, validation_alias="GPU_DEV_LOGIN_HOURS", gt=0, le=720)
    """How long a login lasts, in hours. Rotating a key does not lengthen it: then one logs in again. What was
    opened with its keys, SSH connections through the proxy for example, ends with it."""

    @property
    def key_life(self) -> timedelta:
        return timedelta(hours=self.key_ttl_hours)

    @property
    def login_life(self) -> timedelta:
        return timedelta(hours=self.login_hours)


class ConnectionSettings(BaseSettings):
    """Limits on connections and requests, in each process of the API and of the SSH proxy."""

    model_config = CONFIG

    total: int = Field(4096, validation_alias="GPU_DEV_CONNECTIONS", ge=1)
    """Most open connections. Never more than half of the files that the process may have open."""
    per_address: int = Field(256, validation_alias="GPU_DEV_CONNECTIONS_PER_ADDRESS", ge=1)
    """Most connections of one address that have not shown a good key."""
    per_user: int = Field(256, validation_alias="GPU_DEV_CONNECTIONS_PER_USER", ge=1)
    """Most connections with good keys of one user."""
    local: int = Field(256, validation_alias="GPU_DEV_CONNECTIONS_LOCAL", ge=1)
    """Most connections on the unix socket of `gpu-dev up`, counted apart from all others."""
    head_seconds: float = Field(10, validation_alias="GPU_DEV_HEADER_SECONDS", gt=0)
    """A connection that has not sent the headers of a request within this time is closed."""
    body_seconds: float = Field(30, validation_alias="GPU_DEV_BODY_SECONDS", gt=0)
    """A request whose body has not arrived within this time is answered 408."""
    request_seconds: float = Field(60, validation_alias="GPU_DEV_REQUEST_SECONDS", gt=0)
    """A request without a good key that is not answered and read within this time is closed. With one, an
    answer may take as long as it likes."""


class SshProxySettings(BaseSettings):
    """The SSH proxy, by which clients reach dev servers without a port of a node being open to them."""

    model_config = CONFIG

    url: str = Field("", validation_alias="GPU_DEV_SSH_PROXY_URL", pattern=r"^(/|https?://[^?#@\s\"%]+)?$")
    """Address of the proxy as clients know it; `/` is that of the API. The SSH configuration that they write
    leads through it; empty: to the dev servers themselves."""
    host: str = Field("127.0.0.1", validation_alias="GPU_DEV_SSH_PROXY_HOST")
    """Address to listen on."""
    port: int = Field(0, validation_alias="GPU_DEV_SSH_PROXY_PORT", ge=0, le=65535)
    """Port to listen on. With one, `gpu-dev up` runs a proxy as well."""
    tunnels_per_user: int = Field(64, validation_alias="GPU_DEV_SSH_PROXY_TUNNELS_PER_USER", ge=1)
    """Tunnels that one user may have open at once, in each process of the proxy."""
    idle_minutes: float = Field(60, validation_alias="GPU_DEV_SSH_PROXY_IDLE_MINUTES", gt=0)
    """A tunnel through which nothing has passed for so long is closed. `ssh` sends a sign of life every 30
    seconds, so that an open shell is never idle."""
    check_seconds: float = Field(30, validation_alias="GPU_DEV_SSH_PROXY_CHECK_SECONDS", gt=0)
    """How often it is checked that reservations with a tunnel are active, and their users not disabled."""
    drain_seconds: float = Field(0, validation_alias="GPU_DEV_SSH_PROXY_DRAIN_SECONDS", ge=0)
    """How long a proxy that is to stop leaves open tunnels as they are, in seconds; it opens no new ones."""

    @property
    def public_url(self) -> str:
        """On one machine, where it listens is how clients know it."""
        return self.url or (f"http://{self.host}:{self.port}" if self.port else "")


class ProcessSettings(BaseSettings):
    """This process."""

    model_config = CONFIG

    log_level: Literal["debug", "info", "warning", "error"] = Field(
        "info", validation_alias="GPU_DEV_LOG_LEVEL"
    )
    """The least important log lines that are written."""
    hostname: str = Field(default_factory=socket.gethostname, validation_alias="HOSTNAME")
    """Name of this machine or pod, as it goes into `last_availability_updated_by`."""
    parent_pid: int = Field(0, validation_alias="GPU_DEV_PARENT_PID")
    """Set by `gpu-dev up`: end when this process ends."""
    ready_fd: int = Field(-1, validation_alias="GPU_DEV_READY_FD")
    """Set by `gpu-dev up`: descriptor to write to once this process is ready."""
    fault_file: Path | None = Field(None, validation_alias="GPU_DEV_FAULT_FILE")
    """For tests of crash safety: a file that names a point of a turn at which the process kills itself."""
