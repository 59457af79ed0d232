"""Who may come in."""

from __future__ import annotations

from datetime import timedelta
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import Self

from pydantic import Field, SecretStr, field_validator, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from gpudev.settings.reading import CONFIG, split


class AwsSettings(BaseSettings):
    """Amazon Web Services, and who may log in by them."""

    model_config = CONFIG

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
    autoscaling_endpoint: str = Field(
        "", validation_alias="GPU_DEV_AUTOSCALING_ENDPOINT", pattern=r"^(https?://[^/?#@]+/?)?$"
    )
    """Address of the one Auto Scaling service to ask how many machines there are. Empty: that of AWS, and
    with `GPU_DEV_STATE_DIR` none."""
    accepts_credentials: bool = Field(False, validation_alias="GPU_DEV_ACCEPT_AWS_CREDENTIALS")
    """Whether a login may hold AWS credentials themselves, as clients of version 0.3 send them: secrets that
    leave the user's machine. Newer clients do without."""

    @property
    def accounts(self) -> frozenset[str]:
        return split(self.allowed_accounts)

    @property
    def names(self) -> frozenset[str]:
        return split(self.public_names.lower())


class AccessSettings(BaseSettings):
    """Who may do what, and how often. Lists are separated by commas."""

    model_config = CONFIG

    admin_names: str = Field("", validation_alias="GPU_DEV_ADMINS")
    """Identities of the admins: the ARN that `gpu-dev whoami` shows each of them, or `local:NAME` for an
    account of the server's own machine, whose owner is an admin anyway. A username alone is refused."""
    trusted_proxies: str = Field("", validation_alias="GPU_DEV_TRUSTED_PROXIES")
    """Addresses and networks of the proxies whose `X-Forwarded-For` is believed, `10.0.0.0/8` for example."""
    key_overlap_seconds: int = Field(60, validation_alias="GPU_DEV_KEY_OVERLAP_SECONDS", ge=0, le=3600)
    """How long a key goes on working after it was rotated, in seconds."""
    login_failures: int = Field(20, validation_alias="GPU_DEV_LOGIN_FAILURES", ge=1)
    """So many failed logins from one address within the window below, and the next ones that fail are
    answered 429. A correct login is let in at any time."""
    login_failure_minutes: float = Field(5, validation_alias="GPU_DEV_LOGIN_FAILURE_MINUTES", gt=0)
    """The window in which failed logins are counted, in minutes."""
    requests_per_second: float = Field(100, validation_alias="GPU_DEV_REQUESTS_PER_SECOND", ge=0)
    """Requests a second that one key may go on making, in each process of the API; 0 is without limit."""
    request_burst: int = Field(1000, validation_alias="GPU_DEV_REQUEST_BURST", ge=1)
    """Requests that one key may make at once before that."""
    submits_per_minute: float = Field(30, validation_alias="GPU_DEV_SUBMITS_PER_MINUTE", ge=0)
    """Submits a minute that one user may go on making, in each process of the API; 0 is without limit, and so
    is the sole owner of a machine. Each costs the start of a dev server."""
    submit_burst: int = Field(60, validation_alias="GPU_DEV_SUBMIT_BURST", ge=1)
    """Submits that one user may make at once before that."""
    wrong_keys_per_minute: float = Field(60, validation_alias="GPU_DEV_WRONG_KEYS_PER_MINUTE", ge=0)
    """Requests with a wrong key from one address, in each process of the API; 0 is without limit."""
    seal_seconds: float = Field(10, validation_alias="GPU_DEV_AUDIT_SEAL_SECONDS", gt=0)
    """How often the audit log is sealed, in seconds."""
    verify_minutes: float = Field(60, validation_alias="GPU_DEV_AUDIT_VERIFY_MINUTES", gt=0)
    """How often a controller verifies the whole audit log, in minutes; the metric `gpu_dev_audit_findings`
    says what came of it."""

    @property
    def verify_every(self) -> timedelta:
        return timedelta(minutes=self.verify_minutes)

    @property
    def admins(self) -> frozenset[str]:
        return split(self.admin_names)

    @property
    def proxies(self) -> tuple[IPv4Network | IPv6Network, ...]:
        return tuple(ip_network(text) for text in sorted(split(self.trusted_proxies)))

    @field_validator("trusted_proxies")
    @classmethod
    def _check_proxies(cls, value: str) -> str:
        for text in split(value):
            ip_network(text)
        return value


class GitHubSettings(BaseSettings):
    """GitHub: the SSH keys of its users, and, as a part of a login by AWS, who may come in."""

    # A wrong combination is not told with its values: one of them is a secret.
    model_config = SettingsConfigDict(**CONFIG, hide_input_in_errors=True)

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
