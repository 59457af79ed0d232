"""Everything an operator can set, from the environment; the server's only reader of it.

Each field is documented under it, and `docs/reference/settings.md` is made from that text.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from pydantic_settings import BaseSettings

from gpudev.settings.access import AccessSettings, AwsSettings, GitHubSettings
from gpudev.settings.clock import IdleSettings, NotifySettings, ReportSettings, TimeSettings
from gpudev.settings.servers import ClusterSettings, DiskSettings, KubernetesSettings, LocalSettings
from gpudev.settings.service import (
    ApiSettings,
    ConnectionSettings,
    DatabaseSettings,
    ProcessSettings,
    SshProxySettings,
)


@dataclass(frozen=True, slots=True)
class Settings:
    """All groups, read from the environment when it is made."""

    database: DatabaseSettings = field(default_factory=DatabaseSettings)
    api: ApiSettings = field(default_factory=ApiSettings)
    connections: ConnectionSettings = field(default_factory=ConnectionSettings)
    aws: AwsSettings = field(default_factory=AwsSettings)
    github: GitHubSettings = field(default_factory=GitHubSettings)
    access: AccessSettings = field(default_factory=AccessSettings)
    time: TimeSettings = field(default_factory=TimeSettings)
    idle: IdleSettings = field(default_factory=IdleSettings)
    notify: NotifySettings = field(default_factory=NotifySettings)
    reports: ReportSettings = field(default_factory=ReportSettings)
    local: LocalSettings = field(default_factory=LocalSettings)
    cluster: ClusterSettings = field(default_factory=ClusterSettings)
    kubernetes: KubernetesSettings = field(default_factory=KubernetesSettings)
    disks: DiskSettings = field(default_factory=DiskSettings)
    ssh_proxy: SshProxySettings = field(default_factory=SshProxySettings)
    process: ProcessSettings = field(default_factory=ProcessSettings)


GROUPS: tuple[type[BaseSettings], ...] = (
    DatabaseSettings,
    ApiSettings,
    ConnectionSettings,
    AwsSettings,
    GitHubSettings,
    AccessSettings,
    TimeSettings,
    IdleSettings,
    NotifySettings,
    ReportSettings,
    LocalSettings,
    ClusterSettings,
    KubernetesSettings,
    DiskSettings,
    SshProxySettings,
    ProcessSettings,
)
