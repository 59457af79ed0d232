"""Everything an operator can set, from the environment; the server's only reader of it.

Each field is documented under it, and `docs/reference/settings.md` is made from that text.
"""

from __future__ import annotations

import os
import pwd
import socket
from dataclasses import dataclass, field
from datetime import timedelta
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import Literal, Self
from urllib.parse import quote

from pydantic import Field, SecretStr, field_validator, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

_CONFIG = SettingsConfigDict(use_attribute_docstrings=True, populate_by_name=True, frozen=True)


class DatabaseSettings(BaseSettings):
    """PostgreSQL: one address in `GPU_DEV_DATABASE_URL`, or its parts in `POSTGRES_*`."""

    model_config = _CONFIG

    url: str = Field("", validation_alias="GPU_DEV_DATABASE_URL")
    """Address of the database, `postgresql://user:password@host:port/name`. Replaces the parts below."""
    host: str = Field("localhost", validation_alias="POSTGRES_HOST")
    """Host of the database."""
    port: int = Field(5432, validation_alias="POSTGRES_PORT")
    """Port of the database."""
    user: str = Field("gpudev", validation_alias="POSTGRES_USER")
    """User to connect as."""
    password: str = Field("", validation_alias="POSTGRES_PASSWORD")
    """Password of that user."""
    name: str = Field("gpudev", validation_alias="POSTGRES_DB")
    """Name of the database."""
    replica_url: str = Field("", validation_alias="GPU_DEV_DATABASE_REPLICA_URL")
    """Address of a streaming replica. Lists of ended reservations are read from it while it answers."""
    max_connections: int = Field(10, validation_alias="GPU_DEV_DATABASE_MAX_CONNECTIONS", ge=2)
    """Most connections that one process opens, the one that listens aside."""

    @property
    def dsn(self) -> str:
        if self.url:
            return self.url
        login = f"{quote(self.user)}:{quote(self.password)}" if self.password else quote(self.user)
        return f"postgresql://{login}@{self.host}:{self.port}/{quote(self.name)}"


class ApiSettings(BaseSettings):
    """The HTTP service."""

    model_config = _CONFIG

    host: str = Field("127.0.0.1", validation_alias="GPU_DEV_API_HOST")
    """Address to listen on."""
    port: int = Field(8321, validation_alias="GPU_DEV_API_PORT")
    """Port to listen on."""
    socket_fd: int = Field(-1, validation_alias="GPU_DEV_API_FD")
    """Set by `gpu-dev up`: descriptor of a socket that listens already; replaces host and port."""
    workers: int = Field(1, validation_alias="GPU_DEV_API_WORKERS", ge=1, le=64)
    """How many processes serve the API on its one socket. Each opens database connections of its own."""
    metrics_port: int = Field(0, validation_alias="GPU_DEV_METRICS_PORT")
    """Port for Prometheus metrics of all processes that share `PROMETHEUS_MULTIPROC_DIR`; 0 turns it off."""
    metrics_dir: Path | None = Field(None, validation_alias="PROMETHEUS_MULTIPROC_DIR")
    """Folder in which processes share their metrics. Several workers make one of their own without it."""
    key_ttl_hours: int = Field(2, validation_alias="API_KEY_TTL_HOURS", ge=1, le=168)
    """How long an API key lives, in hours."""


class AwsSettings(BaseSettings):
    """Amazon Web Services, and who may log in by them."""

    model_config = _CONFIG

    region: str = Field("us-east-2", validation_alias="AWS_REGION", pattern=r"^[a-z0-9-]+$")
    """Region of AWS that the server works in."""
    allowed_accounts: str = Field("", validation_alias="ALLOWED_AWS_ACCOUNTS", pattern=r"^[0-9, ]*$")
    """Accounts whose people may log in, separated by commas. Empty: the server's own account, which it asks
    AWS for; if it has none, AWS login is off. With `GPU_DEV_STATE_DIR`, empty is off."""
    allowed_role: str = Field("SSOCloudDevGpuReservation", validation_alias="ALLOWED_AWS_ROLE", min_length=1)
    """The role that those who log in must have, or a permission set of IAM Identity Center that makes it."""
    public_names: str = Field("", validation_alias="GPU_DEV_PUBLIC_NAMES")
    """Host names of the addresses by which clients know this API, separated by commas. A login signed for
    another name is refused. Empty: `localhost` where the API listens on this machine only, else none."""
    sts_endpoint: str = Field(
        "", validation_alias="GPU_DEV_STS_ENDPOINT", pattern=r"^(https?://[^/?#@]+/?)?$"
    )
    """Address of the one STS to ask who somebody is. Empty: those of AWS."""
    accepts_credentials: bool = Field(True, validation_alias="GPU_DEV_ACCEPT_AWS_CREDENTIALS")
    """Whether a login may hold AWS credentials themselves, as clients of version 0.3 send them."""

    @property
    def accounts(self) -> frozenset[str]:
        return _split(self.allowed_accounts)

    @property
    def names(self) -> frozenset[str]:
        return _split(self.public_names.lower())


class AccessSettings(BaseSettings):
    """Who may do what, and how often. Lists are separated by commas."""

    model_config = _CONFIG

    admin_names: str = Field("", validation_alias="GPU_DEV_ADMINS")
    """Usernames of the admins. On one machine its owner is an admin, too."""
    trusted_proxies: str = Field("", validation_alias="GPU_DEV_TRUSTED_PROXIES")
    """Addresses and networks of the proxies whose `X-Forwarded-For` is believed, `10.0.0.0/8` for example."""
    key_overlap_seconds: int = Field(60, validation_alias="GPU_DEV_KEY_OVERLAP_SECONDS", ge=0, le=3600)
    """How long a key goes on working after it was rotated, in seconds."""
    login_failures: int = Field(20, validation_alias="GPU_DEV_LOGIN_FAILURES", ge=1)
    """So many failed logins from one address, and no more are looked at until the window below has passed."""
    login_failure_minutes: float = Field(5, validation_alias="GPU_DEV_LOGIN_FAILURE_MINUTES", gt=0)
    """The window in which failed logins are counted, in minutes."""
    requests_per_second: float = Field(100, validation_alias="GPU_DEV_REQUESTS_PER_SECOND", ge=0)
    """Requests a second that one key may go on making, in each process of the API; 0 is without limit."""
    request_burst: int = Field(1000, validation_alias="GPU_DEV_REQUEST_BURST", ge=1)
    """Requests that one key may make at once before that."""
    wrong_keys_per_minute: float = Field(60, validation_alias="GPU_DEV_WRONG_KEYS_PER_MINUTE", ge=0)
    """Requests with a wrong key from one address, in each process of the API; 0 is without limit."""
    seal_seconds: float = Field(10, validation_alias="GPU_DEV_AUDIT_SEAL_SECONDS", gt=0)
    """How often the audit log is sealed, in seconds."""

    @property
    def admins(self) -> frozenset[str]:
        return _split(self.admin_names)

    @property
    def proxies(self) -> tuple[IPv4Network | IPv6Network, ...]:
        return tuple(ip_network(text) for text in sorted(_split(self.trusted_proxies)))

    @field_validator("trusted_proxies")
    @classmethod
    def _check_proxies(cls, value: str) -> str:
        for text in _split(value):
            ip_network(text)
        return value


def _split(text: str) -> frozenset[str]:
    return frozenset(part.strip() for part in text.split(",") if part.strip())


class GitHubSettings(BaseSettings):
    """GitHub: the SSH keys of its users, and, as a part of a login by AWS, who may come in."""

    # A wrong combination is not told with its values: one of them is a secret.
    model_config = SettingsConfigDict(**_CONFIG, hide_input_in_errors=True)

    url: str = Field("https://github.com", validation_alias="GPU_DEV_GITHUB_URL")
    """Address whose `/<user>.keys` lists the public keys of a user."""
    timeout_seconds: float = Field(3, validation_alias="GPU_DEV_GITHUB_TIMEOUT_SECONDS", gt=0, le=30)
    """How long a submit waits for it, in seconds, before the keys that were read last are used. Also how long
    a login waits for each answer of GitHub."""
    organisation: str = Field("", validation_alias="GPU_DEV_GITHUB_ORGANISATION", pattern=r"^[A-Za-z0-9-]*$")
    """The organisation that those who log in must be members of."""
    team: str = Field("", validation_alias="GPU_DEV_GITHUB_TEAM", pattern=r"^[A-Za-z0-9._-]*$")
    """The team of that organisation that they must be in, as it is written in its address."""
    repository: str = Field(
        "", validation_alias="GPU_DEV_GITHUB_REPOSITORY", pattern=r"^([A-Za-z0-9-]+/[A-Za-z0-9._-]+)?$"
    )
    """The repository, `OWNER/NAME`, that they must have the right to push to."""
    token: SecretStr = Field(SecretStr(""), validation_alias="GPU_DEV_GITHUB_TOKEN")
    """Token with which the server asks GitHub for that; needed as soon as one of these is set."""
    api_url: str = Field(
        "https://api.github.com",
        validation_alias="GPU_DEV_GITHUB_API_URL",
        pattern=r"^https?://[^?#@]+$",
    )
    """Address of GitHub's REST API."""
    proof_days: float = Field(30, validation_alias="GPU_DEV_GITHUB_PROOF_DAYS", gt=0)
    """For how many days a proof of who one is at GitHub holds, before the next signature is wanted."""

    @property
    def wants_check(self) -> bool:
        return bool(self.organisation or self.team or self.repository)

    @model_validator(mode="after")
    def _check_together(self) -> Self:
        if self.team and not self.organisation:
            raise ValueError("GPU_DEV_GITHUB_TEAM needs GPU_DEV_GITHUB_ORGANISATION, whose team it is.")
        if self.wants_check and not self.token.get_secret_value():
            raise ValueError("To ask GitHub who may come in, GPU_DEV_GITHUB_TOKEN is needed.")
        return self


class TimeSettings(BaseSettings):
    """What happens because a clock moved."""

    model_config = _CONFIG

    grace_seconds: int = Field(120, validation_alias="GRACE_PERIOD_SECONDS", ge=0)
    """Time after the end of a reservation before its server is taken down, in seconds."""
    start_limit_minutes: float = Field(60, validation_alias="GPU_DEV_START_LIMIT_MINUTES", gt=0)
    """How long a server may take to start before it is given up, in minutes."""

    @property
    def grace(self) -> timedelta:
        return timedelta(seconds=self.grace_seconds)

    @property
    def start_limit(self) -> timedelta:
        return timedelta(minutes=self.start_limit_minutes)


class LocalSettings(BaseSettings):
    """One machine as the cluster; `gpu-dev up` sets these for the processes that it starts."""

    model_config = _CONFIG

    state_dir: Path | None = Field(None, validation_alias="GPU_DEV_STATE_DIR")
    """Folder of the database, the dev servers and their homes. Without it there is no one-machine mode."""
    fleet: str = Field("", validation_alias="GPU_DEV_FLEET")
    """`test`, `prod`, `detect` or a fleet file. Empty: `detect` where there are NVIDIA GPUs, else `test`."""
    isolation: Literal["", "bubblewrap", "none"] = Field("", validation_alias="GPU_DEV_ISOLATION")
    """How dev servers are kept apart. Empty: bubblewrap where it works, else not at all."""
    read_only_paths: str = Field("", validation_alias="GPU_DEV_READ_ONLY_PATHS")
    """More folders of this machine that dev servers may read, separated by colons."""


class DiskSettings(BaseSettings):
    """Disks of users, where they are not directories of one machine."""

    model_config = _CONFIG

    zone: str = Field("", validation_alias="GPU_DEV_DISK_ZONE", pattern=r"^[a-z0-9-]*$")
    """Availability zone in which a disk is made that nobody uses yet. Empty: the first of the region."""
    kms_key: str = Field("", validation_alias="GPU_DEV_DISK_KMS_KEY")
    """Key that volumes are encrypted with, which they always are. Empty: the account's own key for EBS."""
    listing_bucket: str = Field("", validation_alias="GPU_DEV_DISK_LISTING_BUCKET")
    """S3 bucket for the file listings of snapshots. Empty: they are kept in the database."""


def default_state_dir() -> Path:
    """Where one machine keeps its state unless told otherwise."""
    home = os.environ.get("HOME") or pwd.getpwuid(os.getuid()).pw_dir
    base = os.environ.get("XDG_DATA_HOME") or Path(home) / ".local" / "share"
    return Path(base) / "gpu-dev"


class ProcessSettings(BaseSettings):
    """This process."""

    model_config = _CONFIG

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


@dataclass(frozen=True, slots=True)
class Settings:
    """All groups, read from the environment when it is made."""

    database: DatabaseSettings = field(default_factory=DatabaseSettings)
    api: ApiSettings = field(default_factory=ApiSettings)
    aws: AwsSettings = field(default_factory=AwsSettings)
    github: GitHubSettings = field(default_factory=GitHubSettings)
    access: AccessSettings = field(default_factory=AccessSettings)
    time: TimeSettings = field(default_factory=TimeSettings)
    local: LocalSettings = field(default_factory=LocalSettings)
    disks: DiskSettings = field(default_factory=DiskSettings)
    process: ProcessSettings = field(default_factory=ProcessSettings)


GROUPS: tuple[type[BaseSettings], ...] = (
    DatabaseSettings,
    ApiSettings,
    AwsSettings,
    GitHubSettings,
    AccessSettings,
    TimeSettings,
    LocalSettings,
    DiskSettings,
    ProcessSettings,
)
