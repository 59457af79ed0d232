"""What happens because time passes, who is told of it, and what it costs."""

from __future__ import annotations

from datetime import timedelta

from pydantic import Field, field_validator
from pydantic_settings import BaseSettings

from gpudev.settings.reading import CONFIG, split


class TimeSettings(BaseSettings):
    """What happens because a clock moved."""

    model_config = CONFIG

    grace_seconds: int = Field(120, validation_alias="GRACE_PERIOD_SECONDS", ge=0)
    """Time after the end of a reservation before its server is taken down, in seconds."""
    longest_hours: float = Field(48, validation_alias="GPU_DEV_LONGEST_HOURS", ge=24, le=8760)
    """How long a reservation may become by extensions, in hours from its activation."""
    start_limit_minutes: float = Field(60, validation_alias="GPU_DEV_START_LIMIT_MINUTES", gt=0)
    """How long a server may take to start before it is given up, in minutes."""
    progress_limit_minutes: float = Field(15, validation_alias="GPU_DEV_PROGRESS_LIMIT_MINUTES", gt=0)
    """How long a start may show nothing new before it is given up, in minutes."""
    max_queue_hours: float = Field(48, validation_alias="MAX_QUEUE_HOURS", gt=0)
    """How long a request may wait before it is cancelled, in hours."""
    stopped_days: float = Field(7, validation_alias="GPU_DEV_STOPPED_DAYS", gt=0, le=365)
    """How long a reservation may be stopped before it ends, in days. Its owner is told a day before."""
    start_allowance_seconds: float = Field(60, validation_alias="GPU_DEV_START_ALLOWANCE_SECONDS", ge=0)
    """How long the plan of the queue reckons with for the start of a server, in seconds. Starts that take
    longer make those late who were promised the room after it."""
    extensions_beat_queue: bool = Field(False, validation_alias="GPU_DEV_EXTENSIONS_BEAT_QUEUE")
    """Whether an extension may take time that somebody who waits was promised. Those are told then."""
    plan_step_seconds: float = Field(300, validation_alias="GPU_DEV_PLAN_STEP_SECONDS", ge=1, le=3600)
    """The queue promises times that are whole multiples of this, in seconds."""

    @property
    def start_allowance(self) -> timedelta:
        return timedelta(seconds=self.start_allowance_seconds)

    @property
    def plan_step(self) -> timedelta:
        return timedelta(seconds=self.plan_step_seconds)

    lease_seconds: int = Field(30, validation_alias="GPU_DEV_LEASE_SECONDS", ge=2, le=600)
    """How long a reservation that a controller was working on waits for it when it has died, in seconds; a
    disk waits twice as long."""

    @property
    def lease(self) -> timedelta:
        return timedelta(seconds=self.lease_seconds)

    @property
    def grace(self) -> timedelta:
        return timedelta(seconds=self.grace_seconds)

    @property
    def longest(self) -> timedelta:
        return timedelta(hours=self.longest_hours)

    @property
    def start_limit(self) -> timedelta:
        return timedelta(minutes=self.start_limit_minutes)

    @property
    def progress_limit(self) -> timedelta:
        return timedelta(minutes=self.progress_limit_minutes)

    @property
    def stopped(self) -> timedelta:
        return timedelta(days=self.stopped_days)

    @property
    def max_queue(self) -> timedelta:
        return timedelta(hours=self.max_queue_hours)


class IdleSettings(BaseSettings):
    """Servers that nobody uses, and how their use is measured."""

    model_config = CONFIG

    idle_minutes: float = Field(0, validation_alias="GPU_DEV_IDLE_MINUTES", ge=0)
    """After how many idle minutes a reservation is warned, and then ended; 0: nobody is ended for that."""
    idle_minutes_by_type: str = Field("", validation_alias="GPU_DEV_IDLE_MINUTES_BY_TYPE")
    """The same for single GPU types, `h100=60,t4=0` for example."""
    countdown_minutes: float = Field(15, validation_alias="GPU_DEV_IDLE_COUNTDOWN_MINUTES", gt=0)
    """How long before its end an idle reservation is warned, in minutes."""
    sample_seconds: float = Field(60, validation_alias="GPU_DEV_USAGE_SECONDS", gt=0)
    """How often the use of every dev server is measured, in seconds."""

    @property
    def after(self) -> timedelta | None:
        return _minutes_or_never(self.idle_minutes)

    @property
    def by_type(self) -> dict[str, timedelta | None]:
        pairs = (part.partition("=") for part in split(self.idle_minutes_by_type.lower()))
        return {name.strip(): _minutes_or_never(float(minutes)) for name, _, minutes in pairs}

    @property
    def countdown(self) -> timedelta:
        return timedelta(minutes=self.countdown_minutes)

    @property
    def sample_every(self) -> timedelta:
        return timedelta(seconds=self.sample_seconds)

    @field_validator("idle_minutes_by_type")
    @classmethod
    def _check_types(cls, value: str) -> str:
        for part in split(value):
            name, _, minutes = part.partition("=")
            if not name.strip() or float(minutes) < 0:
                raise ValueError(f"{part!r} is not a type with its minutes")
        return value


def _minutes_or_never(minutes: float) -> timedelta | None:
    return timedelta(minutes=minutes) if minutes else None


class NotifySettings(BaseSettings):
    """Notifications that users have sent to themselves."""

    model_config = CONFIG

    host_names: str = Field("", validation_alias="GPU_DEV_NOTIFY_HOSTS")
    """Hosts to which notifications may be sent, with a port where it is not 443, separated by commas:
    `hooks.slack.com` for example. Empty: none."""

    @property
    def hosts(self) -> frozenset[str]:
        return split(self.host_names.lower())


class ReportSettings(BaseSettings):
    """Reports for admins."""

    model_config = CONFIG

    price_list: str = Field("", validation_alias="GPU_DEV_PRICES")
    """What a GPU costs for an hour, by type: `h100=4.1,t4=0.5` for example. A type without a price costs
    nothing that is known."""

    @property
    def prices(self) -> dict[str, float]:
        pairs = (part.partition("=") for part in split(self.price_list.lower()))
        return {name.strip(): float(price) for name, _, price in pairs}

    @field_validator("price_list")
    @classmethod
    def _check_prices(cls, value: str) -> str:
        for part in split(value):
            name, _, price = part.partition("=")
            if not name.strip() or float(price) < 0:
                raise ValueError(f"{part!r} is not a type with its price")
        return value
