"""Values of the rules as values of the wire."""

from __future__ import annotations

import math
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any

from gpudev.app.application import ClusterInfo
from gpudev.app.identity import User
from gpudev.app.nodes import StoredAvailability
from gpudev.app.reservations import News, StoredEvent, StoredOperation
from gpudev.domain.names import member_name, server_name
from gpudev.domain.notices import tell_of_end
from gpudev.domain.quota import QuotaUse
from gpudev.domain.reservation import Reservation
from gpudev.domain.server import Member, SshAddress
from gpudev.texts.fact import Fact, reason_fact
from gpudev.texts.sentences import advise, say
from gpudev.texts.vocabulary import QUEUE_MOVE, WAITING, Status
from gpudev.wire.cluster import QueueEntry, QuotaStatus, TypeAvailability
from gpudev.wire.jobs import JobEvent, OperationDetail

_HOUR = timedelta(hours=1)
_MINUTE = timedelta(minutes=1)
_DAY = timedelta(days=1)


def job_detail(
    reservation: Reservation, cluster: ClusterInfo, now: datetime, zone: tzinfo = UTC
) -> dict[str, object]:
    """A `JobDetail` as it goes on the wire, made at once: most of a long list is spent here."""
    reservation_id, status, reason = reservation.id, reservation.state.status, reservation.state.reason
    gpu_type = cluster.catalogue.find(reservation.spec.gpu_type)
    address = reservation.address if status is Status.ACTIVE else None
    is_waiting = status in WAITING
    waits_until = reservation.forecast.estimated_start_at if is_waiting else None
    detail = say_if(reservation.state.detail, zone)
    return _known(
        job_id=reservation_id,
        reservation_id=reservation_id,
        user_id=reservation.spec.username,
        status=status,
        gpu_type=reservation.spec.gpu_type,
        gpu_count=reservation.spec.gpu_count,
        duration_hours=reservation.spec.duration / _HOUR,
        created_at=reservation.spec.created_at,
        name=reservation.spec.name,
        version=reservation.version,
        jupyter_enabled=False,
        secondary_users=[],
        oom_count=reservation.memory.oom_count,
        last_oom_at=reservation.memory.last_oom_at,
        stopped_at=reservation.state.stopped_at,
        kept_until=reservation.memory.kept_until,
        extension_error=say_if(reservation.memory.extension_error, zone),
        simulated=reservation.spec.gpu_type in cluster.simulated_types or None,
        instance_type=gpu_type.instance_type if gpu_type else None,
        expires_at=reservation.state.expires_at,
        launched_at=reservation.state.launched_at,
        outcome=reservation.state.outcome,
        exit_code=reservation.state.exit_code,
        reservation_ended=reservation.state.ended_at,
        pod_name=server_name(reservation_id) if reservation.node else None,
        node_ip=address.host if address else None,
        node_port=address.port if address else None,
        ssh_command=address.command if address else None,
        ssh_host_keys=_known_hosts(address, reservation.host_keys) if address else None,
        ssh_proxy_url=cluster.ssh_proxy_url if address else None,
        nodes=_job_nodes(reservation) if reservation.spec.node_count > 1 else None,
        queue_position=reservation.forecast.queue_position if is_waiting else None,
        estimated_wait_minutes=_minutes_until(waits_until, now),
        estimated_start_at=waits_until,
        likely_start=reservation.forecast.likely_start if is_waiting else None,
        start_at=reservation.spec.start_at,
        reason=reason,
        failure_reason=detail if status is Status.FAILED else None,
        current_detailed_status=detail,
        hint=advise(reason_fact(reason), zone) if reason else None,
        disk_name=reservation.spec.disk_name or None,
        ebs_volume_id=reservation.location.volume_id,
        github_user=reservation.settings.github_user or None,
        warning=_warning(reservation, zone),
        last_updated=reservation.state.last_updated,
        cli_version=reservation.settings.client_version or None,
    )


def _warning(reservation: Reservation, zone: tzinfo) -> str | None:
    """What is to be known of how the request was read, and that the end is near."""
    told = reservation.spec.warnings
    if reservation.state.status is Status.ACTIVE:
        memory = reservation.memory
        minutes = memory.warned_minutes
        end = tell_of_end(reservation, minutes) if minutes is not None else None
        standing = (end, memory.idle_warning, memory.drain_warning)
        told = (*told, *(one for one in standing if one is not None))
    return say_all(told, zone) or None


def say_if(told: Fact | None, zone: tzinfo) -> str | None:
    return None if told is None else say(told, zone)


def say_all(told: Iterable[Fact], zone: tzinfo) -> str:
    return " ".join(say(one, zone) for one in told)


def job_events(news: News, zone: tzinfo) -> list[JobEvent]:
    return [_job_event(stored, news.reservation, zone) for stored in news.events]


def queue_move(news: News, last_number: int, zone: tzinfo) -> JobEvent:
    """Not an event of the history: only where a waiting reservation stands now."""
    reservation = news.reservation
    return JobEvent(
        number=last_number,
        kind=QUEUE_MOVE,
        message=say_if(reservation.state.detail, zone) or "",
        at=reservation.forecast.last_queue_update or reservation.spec.created_at,
        elapsed_seconds=0,
        status=reservation.state.status,
        reason=reservation.state.reason,
        queue_position=reservation.forecast.queue_position,
        estimated_start_at=reservation.forecast.estimated_start_at,
        likely_start=_window_of(reservation),
        **_facts(reservation.state.detail),
    )


def queue_entry(reservation: Reservation, caller: User, now: datetime, zone: tzinfo) -> QueueEntry:
    is_own = reservation.spec.user_id == caller.user_id
    return QueueEntry(
        gpu_count=reservation.spec.gpu_count,
        user_id=reservation.spec.username,
        is_own=is_own,
        status=reservation.state.status,
        created_at=reservation.spec.created_at,
        duration_hours=reservation.spec.duration / _HOUR,
        position=reservation.forecast.queue_position,
        estimated_start_at=reservation.forecast.estimated_start_at,
        estimated_wait_minutes=_minutes_until(reservation.forecast.estimated_start_at, now),
        likely_start=list(reservation.forecast.likely_start) if reservation.forecast.likely_start else None,
        start_at=reservation.spec.start_at,
        job_id=reservation.id if is_own else None,
        name=reservation.spec.name if is_own else None,
        reason=reservation.state.reason if is_own else None,
        current_detailed_status=say_if(reservation.state.detail, zone) if is_own else None,
    )


def operation_detail(operation: StoredOperation, zone: tzinfo) -> OperationDetail:
    return OperationDetail(
        operation_id=operation.operation_id,
        action=operation.kind,
        status=operation.status,
        error=say_if(operation.error, zone),
        started_at=operation.requested_at,
        finished_at=operation.finished_at,
    )


def type_availability(stored: StoredAvailability, now: datetime) -> TypeAvailability:
    room = stored.availability
    return TypeAvailability(
        gpu_type=room.gpu_type,
        total=room.total,
        available=room.available,
        in_use=room.total - room.available,
        # A request for a CPU type wants no GPU but a place.
        queued=stored.queued_gpus or stored.queued_requests,
        max_per_node=stored.max_per_node,
        max_reservable=room.max_reservable,
        full_nodes_available=room.full_nodes_available,
        simulated=room.is_simulated,
        estimated_wait_minutes=_minutes_until(room.next_start_at, now),
    )


def _job_event(stored: StoredEvent, reservation: Reservation, zone: tzinfo) -> JobEvent:
    return JobEvent(
        number=stored.number,
        kind=stored.event.kind,
        message=say(stored.event.fact, zone),
        at=stored.event.at,
        elapsed_seconds=stored.elapsed.total_seconds(),
        status=reservation.state.status,
        reason=stored.event.reason,
        queue_position=reservation.forecast.queue_position,
        estimated_start_at=reservation.forecast.estimated_start_at,
        likely_start=_window_of(reservation),
        **_facts(stored.event.fact),
    )


def _facts(told: Fact | None) -> dict[str, Any]:
    return {} if told is None else {"key": told.key, "data": dict(told.data)}


def _window_of(reservation: Reservation) -> list[datetime] | None:
    likely = reservation.forecast.likely_start
    return list(likely) if likely and reservation.is_waiting else None


def _job_nodes(reservation: Reservation) -> list[dict[str, object]] | None:
    is_active = reservation.state.status is Status.ACTIVE
    return [
        _job_node(reservation, rank, member if is_active else Member(member.node))
        for rank, member in enumerate(reservation.location.members)
    ] or None


def _job_node(reservation: Reservation, rank: int, member: Member) -> dict[str, object]:
    address = member.address
    return _known(
        rank=rank,
        node=member.node,
        pod_name=member_name(reservation.id, rank),
        node_ip=address.host if address else None,
        node_port=address.port if address else None,
        ssh_command=address.command if address else None,
        ssh_host_keys=_known_hosts(address, member.host_keys) if address else None,
    )


def _known(**fields: object) -> dict[str, object]:
    return {name: content for name, content in fields.items() if content is not None}


def _known_hosts(address: SshAddress, host_keys: tuple[str, ...]) -> list[str]:
    return [f"[{address.host}]:{address.port} {key}" for key in host_keys]


def changes_at(reservation: Reservation, now: datetime) -> datetime | None:
    """When a `JobDetail` becomes another by itself: how long a request still waits is told in minutes."""
    start = reservation.forecast.estimated_start_at if reservation.is_waiting else None
    minutes = _minutes_until(start, now)
    return start - (minutes - 1) * _MINUTE if start is not None and minutes else None


def _minutes_until(moment: datetime | None, now: datetime) -> int | None:
    if moment is None:
        return None
    return max(0, math.ceil((moment - now) / _MINUTE))


def quota_status(one: QuotaUse) -> QuotaStatus:
    quota, use = one.quota, one.use
    return QuotaStatus(
        gpu_type=one.gpu_type,
        gpus=use.gpus,
        waiting=use.waiting,
        reserved_gpu_hours=use.reserved_gpu_hours,
        gpu_hours=use.gpu_hours,
        period_days=quota.period / _DAY,
        max_gpus=quota.gpus,
        max_waiting=quota.waiting,
        max_reserved_gpu_hours=quota.reserved_gpu_hours,
        max_gpu_hours=quota.gpu_hours,
        long_gpus=None if one.long_limit is None else use.long_gpus,
        max_long_gpus=one.long_limit,
    )
