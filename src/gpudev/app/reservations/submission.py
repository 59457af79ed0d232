"""Submit a request for a dev server."""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from gpudev.app.identity.authentication import Caller
from gpudev.app.limits import Limiter
from gpudev.app.reservations.authorized_keys import AuthorizedKeys, KeyCollection
from gpudev.app.reservations.home_disk import DEFAULT_DISK_TAKEN, HomeDisks, WantedDisk
from gpudev.app.reservations.preview import Preview
from gpudev.domain.access import combine_public_keys
from gpudev.domain.audit import AuditAction, AuditEntry
from gpudev.domain.capacity import check_labels
from gpudev.domain.catalogue import Catalogue
from gpudev.domain.errors import Conflict, NotFound, Stale
from gpudev.domain.expiry import check_duration
from gpudev.domain.gang import check_gang_environment, check_nodes
from gpudev.domain.names import (
    ReservationId,
    check_client_version,
    check_environment,
    check_image,
    check_reservation_name,
    default_reservation_name,
    is_reservation_name,
    normalise_name,
    suffix_name,
)
from gpudev.domain.operations import Size, resume
from gpudev.domain.plans.turn import Record
from gpudev.domain.preview import check_start
from gpudev.domain.reservation import Event, Reservation, Settings, Spec, State
from gpudev.ports.clock import Clock
from gpudev.ports.reservations import HomeWish, Reservations
from gpudev.ports.users import User
from gpudev.texts.fact import Fact, fact
from gpudev.texts.sentences import say
from gpudev.texts.vocabulary import EventKind

IDEMPOTENCY_KEY_LIFE = timedelta(hours=24)
_MOST_CLASHES = 5


@dataclass(frozen=True, slots=True)
class ReserveRequest:
    """A request as it was sent: `Submission` checks it, and fills in what was left open."""

    spec: Spec
    settings: Settings = field(default_factory=Settings)
    """Without the keys of the GitHub user."""
    disk: WantedDisk = field(default_factory=WantedDisk)
    distributed: bool = False
    """The GPUs may be on several whole nodes."""
    wished_name: str = ""
    """Taken as far as it can be a name, with something added where it is in use; never refused."""
    reservation_id: ReservationId | None = None
    """Chosen by the client: whoever asks for it again means the same request."""


@dataclass(frozen=True, slots=True)
class Submitter:
    """Who submits, and whether their default disk was in use when that was found out."""

    caller: Caller
    is_default_disk_taken: bool = False


@dataclass(frozen=True, slots=True)
class WantedSize:
    """What a stopped reservation is started with; what is not said stays as it was."""

    gpu_type: str = ""
    gpu_count: int | None = None
    distributed: bool = False


@dataclass(frozen=True, slots=True)
class Submission:
    reservations: Reservations
    catalogue: Catalogue
    keys: KeyCollection
    disks: HomeDisks
    clock: Clock
    preview: Preview
    submits: Limiter
    """For each user."""

    def check_spec(self, user: User, request: ReserveRequest) -> Spec:
        """What this user asks for, checked as far as the queue has to do with it."""
        asked = request.spec
        gpu_type = self.catalogue.get(asked.gpu_type)
        return replace(
            asked,
            user_id=user.user_id,
            username=user.username,
            gpu_type=gpu_type.name,
            node_count=check_nodes(gpu_type, asked.gpu_count, distributed=request.distributed),
            duration=check_duration(asked.duration),
            start_at=self._check_start(asked.start_at),
            node_labels=check_labels(asked.node_labels, self.preview.sharing.node_labels),
        )

    async def submit(
        self, submitter: Submitter, request: ReserveRequest, idempotency_key: str = ""
    ) -> Reservation:
        """Write the reservation. The same idempotency key, or the same id, again gives the same one."""
        user = submitter.caller
        self.submits.take(user.user_id)
        draft = self._draft(user, request)
        wish = self.disks.read_wish(request.disk)
        remarks = await self.disks.list_warnings(user, request.disk)
        if wish is not None and wish.is_default and submitter.is_default_disk_taken:
            wish, remarks = None, (*remarks, DEFAULT_DISK_TAKEN)
        asked = request.settings
        keys = await self.keys.collect(asked.ssh_public_keys, asked.github_user)
        # Dated once nothing is waited for any more, so that nobody is put before those already in line.
        draft = _complete(draft, keys, remarks, self.clock.now())
        await self.preview.check_booking(draft, next(_ids(user, request, idempotency_key)))
        clashes = 0
        for reservation_id in _ids(user, request, idempotency_key):
            made = await self._submit(user, replace(draft, id=reservation_id), request, wish)
            if made is not None:
                return made
            earlier = await self._find_own(user, reservation_id)
            if earlier is None:
                clashes += 1
            elif request.reservation_id:
                return earlier
            elif draft.spec.created_at - earlier.spec.created_at < IDEMPOTENCY_KEY_LIFE:
                return _check_same(earlier, draft, request)
            if clashes == _MOST_CLASHES:
                break
        raise Conflict("reservation_id_in_use", code="id_taken")

    async def start(self, user: Caller, stopped: Reservation, wanted: WantedSize) -> Reservation:
        """Request a stopped reservation again; it is counted by the quota of its owner like a new one.

        One that was started so already stays as it is: clients repeat what was not answered.
        """
        self.submits.take(user.user_id)
        size = self._read_size(stopped, wanted)
        if _is_started(stopped, size):
            return stopped
        if size.node_count > 1:
            check_gang_environment(stopped.settings.env_vars)
        await self.disks.check_kept(stopped)
        now = self.clock.now()
        after = resume(stopped, size, now)
        told = after.state.detail or fact("reservation_released")
        entry = user.entry(AuditAction.START, stopped.id, detail=say(told))
        quota = self.preview.sharing.quotas.find(stopped.spec.username, size.gpu_type)
        record = Record(stopped, after, Event(EventKind.RESUMED, told, now))
        try:
            return await self.reservations.request_again(record, (entry,), quota)
        except Stale:
            found = await self.reservations.get(stopped.id)
            if not _is_started(found, size):
                raise
            return found

    def _read_size(self, stopped: Reservation, wanted: WantedSize) -> Size:
        gpu_type = self.catalogue.get(wanted.gpu_type or stopped.spec.gpu_type)
        count = stopped.spec.gpu_count if wanted.gpu_count is None else wanted.gpu_count
        if wanted.gpu_count is None and gpu_type.is_cpu_only:
            count = 0
        is_gang = wanted.distributed or (wanted.gpu_count is None and stopped.is_gang)
        return Size(gpu_type.name, count, check_nodes(gpu_type, count, distributed=is_gang))

    def _draft(self, user: User, request: ReserveRequest) -> Reservation:
        """Everything that can be checked without asking anybody; id and name are still open."""
        spec, asked = self.check_spec(user, request), request.settings
        if spec.node_count > 1:
            check_gang_environment(asked.env_vars)
        if spec.name:
            check_reservation_name(spec.name)
        settings = Settings(
            image=check_image(asked.image),
            env_vars=check_environment(asked.env_vars),
            client_version=check_client_version(asked.client_version),
            time_zone=asked.time_zone,
        )
        return Reservation(ReservationId(""), spec, settings, State(detail=_describe(spec)))

    def _check_start(self, start_at: datetime | None) -> datetime | None:
        if start_at is None:
            return None
        return check_start(start_at, self.clock.now(), self.preview.policy.grid)

    async def _submit(
        self, user: Caller, draft: Reservation, request: ReserveRequest, wish: HomeWish | None
    ) -> Reservation | None:
        """Write it under the first of its names that is free; None if the id is in use."""
        asked = _describe(draft.spec)
        event = Event(EventKind.SUBMITTED, asked, draft.spec.created_at)
        entry = user.entry(AuditAction.SUBMIT, draft.id, detail=say(asked))
        names = _names(draft, request)
        for name in names:
            named = replace(draft, spec=replace(draft.spec, name=name))
            try:
                return await self._write(named, event, entry, wish)
            except Conflict as conflict:
                if conflict.code == "id_taken" or await self._exists(draft.id):
                    break
                if conflict.code == "disk_in_use" and wish is not None:
                    raise await self.disks.describe_conflict(user, wish) from conflict
                if name == names[-1]:
                    raise
        return None

    async def _write(
        self, named: Reservation, event: Event, entry: AuditEntry, wish: HomeWish | None
    ) -> Reservation:
        """The default disk is done without where another reservation has taken it by now."""
        quota = self.preview.sharing.quotas.find(named.spec.username, named.spec.gpu_type)
        try:
            return await self.reservations.submit(named, event, (entry,), wish, quota)
        except Conflict as conflict:
            if conflict.code != "disk_in_use" or wish is None or not wish.is_default:
                raise
        warnings = (*named.spec.warnings, DEFAULT_DISK_TAKEN)
        without_disk = replace(named, spec=replace(named.spec, warnings=warnings))
        return await self.reservations.submit(without_disk, event, (entry,), None, quota)

    async def _exists(self, reservation_id: ReservationId) -> bool:
        """A repeat meets both its own id and its own name; either may be what is complained about."""
        try:
            await self.reservations.get(reservation_id)
        except NotFound:
            return False
        return True

    async def _find_own(self, user: User, reservation_id: ReservationId) -> Reservation | None:
        try:
            earlier = await self.reservations.get(reservation_id)
        except NotFound:
            return None
        return earlier if earlier.spec.user_id == user.user_id else None


def _is_started(reservation: Reservation, size: Size) -> bool:
    spec = reservation.spec
    is_again = spec.requested_at is not None and (reservation.is_waiting or reservation.is_placed)
    return is_again and size == Size(spec.gpu_type, spec.gpu_count, spec.node_count)


def _describe(spec: Spec) -> Fact:
    return fact(
        "reservation_requested",
        gpu_count=spec.gpu_count,
        gpu_type=spec.gpu_type,
        node_count=spec.node_count,
        start_at=spec.start_at,
    )


def _complete(
    draft: Reservation, keys: AuthorizedKeys, remarks: tuple[Fact, ...], now: datetime
) -> Reservation:
    of_keys = (keys.warning,) if keys.warning else ()
    warnings = (*draft.spec.warnings, *of_keys, *remarks)
    settings = replace(draft.settings, ssh_public_keys=keys.public_keys, github_user=keys.github_user)
    spec = replace(draft.spec, warnings=warnings, created_at=now)
    return replace(draft, spec=spec, settings=settings)


def _names(draft: Reservation, request: ReserveRequest) -> tuple[str, ...]:
    """Names to try in turn: one that was asked for or made has to do, one that was wished may change."""
    if draft.spec.name:
        return (draft.spec.name,)
    wish = normalise_name(request.wished_name)
    if not wish:
        return (default_reservation_name(draft.spec.gpu_type, draft.id),)
    suffixed = suffix_name(wish, draft.id)
    return (wish, suffixed) if is_reservation_name(wish) else (suffixed,)


def _ids(user: User, request: ReserveRequest, idempotency_key: str) -> Iterator[ReservationId]:
    """Ids to try in turn: one may be in use, as may its first 8 characters.

    With an idempotency key they follow from user and key, so a repeat meets its own earlier reservation.
    """
    if request.reservation_id:
        yield request.reservation_id
        return
    for attempt in itertools.count():
        if idempotency_key:
            name = f"gpu-dev/{user.user_id}/{idempotency_key}/{attempt}"
            yield ReservationId(str(uuid.uuid5(uuid.NAMESPACE_URL, name)))
        else:
            yield ReservationId(str(uuid.uuid4()))


def _check_same(earlier: Reservation, repeated: Reservation, request: ReserveRequest) -> Reservation:
    def asked_for(reservation: Reservation) -> tuple[object, ...]:
        return (
            reservation.spec.gpu_type,
            reservation.spec.gpu_count,
            reservation.spec.duration,
            reservation.spec.start_at,
            dict(reservation.spec.node_labels),
            dict(reservation.settings.env_vars),
            reservation.settings.github_user,
            reservation.settings.image,
        )

    is_named_alike = earlier.spec.name in _names(replace(repeated, id=earlier.id), request)
    is_like = is_named_alike and _has_same_keys(earlier, request) and request.disk.is_same_for(earlier)
    if asked_for(earlier) != asked_for(repeated) or not is_like:
        raise Conflict("idempotency_key_reused", code="idempotency_key_reused")
    return earlier


def _has_same_keys(earlier: Reservation, request: ReserveRequest) -> bool:
    """The same keys were sent; what GitHub added may have changed in between."""
    sent = set(combine_public_keys(request.settings.ssh_public_keys))
    kept = set(earlier.settings.ssh_public_keys)
    return sent <= kept if earlier.settings.github_user else sent == set(combine_public_keys(kept))
