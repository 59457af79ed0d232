"""Reservations: submit one, find it, change it, follow it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Mapping, Sequence
from dataclasses import dataclass

from gpudev.app.identity.authentication import Caller, Visitor
from gpudev.app.identity.key_watch import KeyWatch
from gpudev.app.reservations.activity import EventFeed, News, ServerLog
from gpudev.app.reservations.home_disk import WantedDisk
from gpudev.app.reservations.lookup import Lookup
from gpudev.app.reservations.operations import Extension, ExtensionRequest, OperationRequests
from gpudev.app.reservations.preview import Preview
from gpudev.app.reservations.submission import ReserveRequest, Submission, Submitter, WantedSize
from gpudev.domain.names import OperationId, ReservationId
from gpudev.domain.preview import Foreseen
from gpudev.domain.queue import Accuracy
from gpudev.domain.reservation import Reservation
from gpudev.ports.cluster import LogQuery
from gpudev.ports.reports import UsagePoint, Usages
from gpudev.ports.reservations import (
    ListQuery,
    Mark,
    Marked,
    MarkedPage,
    Page,
    Reservations,
    StatusCount,
    StoredEvent,
    StoredOperation,
)
from gpudev.texts.vocabulary import Status

__all__ = [
    "ExtensionRequest",
    "ListQuery",
    "LogQuery",
    "Mark",
    "Marked",
    "News",
    "ReservationUseCases",
    "ReserveRequest",
    "StatusCount",
    "StoredEvent",
    "StoredOperation",
    "Submitter",
    "WantedDisk",
    "WantedSize",
]


@dataclass(frozen=True, slots=True)
class ReservationUseCases:
    """A plain `def` hands over to the part that does it, so that a request is not awaited twice."""

    store: Reservations
    lookup: Lookup
    submission: Submission
    operations: OperationRequests
    forecasts: Preview
    feed: EventFeed
    server_log: ServerLog
    usages: Usages
    key_watch: KeyWatch

    def meet_submitter(self, visitor: Visitor) -> Awaitable[Submitter]:
        """Who submits, with what the submission has to know of them."""
        return self.lookup.meet_submitter(visitor)

    def submit(
        self, submitter: Submitter, request: ReserveRequest, idempotency_key: str = ""
    ) -> Awaitable[Reservation]:
        """Write the reservation. The same idempotency key, or the same id, again gives the same one."""
        return self.submission.submit(submitter, request, idempotency_key)

    def preview(
        self, caller: Caller, request: ReserveRequest
    ) -> Awaitable[tuple[Foreseen, tuple[Foreseen, ...]]]:
        """What would become of a request, and what like it would start sooner."""
        return self.forecasts.foresee(self.submission.check_spec(caller, request))

    def find(self, caller: Caller, text: str) -> Awaitable[Reservation]:
        """The reservation that is meant by an id, a prefix or a name."""
        return self.lookup.find(caller, text)

    def find_for_visitor(self, visitor: Visitor, text: str) -> Awaitable[Reservation]:
        """The same; who is asking is found out in the same statement."""
        return self.lookup.find_for_visitor(visitor, text)

    def find_news(
        self, visitor: Visitor, reservation_id: ReservationId, known: Mark | None
    ) -> Awaitable[Marked | None]:
        """The reservation with this id; None if it is as it was under the known mark."""
        return self.lookup.find_news(visitor, reservation_id, known)

    def is_listed_by_marks(self, query: ListQuery, username: str | None) -> bool:
        """Whether `list_marks` answers the query; else `list_page` does."""
        return self.lookup.is_listed_by_marks(query, username)

    def list_marks(self, visitor: Visitor, query: ListQuery) -> Awaitable[MarkedPage]:
        """A page of one's own, by their marks alone."""
        return self.lookup.list_marks(visitor, query)

    def find_marked(self, marks: Sequence[Mark]) -> Awaitable[Mapping[Mark, Marked]]:
        """By the mark that was asked for, each as it is now; without those that are gone."""
        return self.store.find_marked(marks)

    def list_page(self, visitor: Visitor, query: ListQuery, username: str | None) -> Awaitable[Page]:
        """One's own, or, for admins, another user's or everybody's."""
        return self.lookup.list_page(visitor, query, username)

    def list_waiting(self) -> Awaitable[tuple[Reservation, ...]]:
        """Everybody's that wait, by GPU type, in the order in which they came."""
        return self.store.list_waiting()

    def count_live(self) -> Awaitable[Mapping[Status, StatusCount]]:
        return self.store.count_live()

    def cancel(self, caller: Caller, reservation: Reservation) -> Awaitable[OperationId]:
        return self.operations.cancel(caller, reservation)

    def extend(
        self, caller: Caller, reservation: Reservation, asked: ExtensionRequest
    ) -> Awaitable[Extension]:
        return self.operations.extend(caller, reservation, asked)

    def keep(
        self, caller: Caller, reservation: Reservation, hours: float, reason: str
    ) -> Awaitable[OperationId]:
        """Do not end it for being idle, for some hours."""
        return self.operations.keep(caller, reservation, hours, reason)

    def stop(self, caller: Caller, reservation: Reservation) -> Awaitable[OperationId]:
        """End its server; the reservation is kept, with the time that it has left."""
        return self.operations.stop(caller, reservation)

    def start(self, caller: Caller, reservation: Reservation, wanted: WantedSize) -> Awaitable[Reservation]:
        """Put a stopped reservation back into the queue, perhaps for other GPUs."""
        return self.submission.start(caller, reservation, wanted)

    def get_operation(self, caller: Caller, text: str) -> Awaitable[StoredOperation]:
        """What became of a cancel, an extension, a keep or a stop."""
        return self.operations.get(caller, text)

    def follow(
        self, caller: Caller, reservation: Reservation, after: int
    ) -> AsyncGenerator[News | None, None]:
        """News as it happens, for as long as the caller's key is good; None: there was none for a while."""
        return self.key_watch.guard(caller, self.feed.follow(reservation.id, after))

    def read_history(self, reservation: Reservation, after: int) -> Awaitable[News]:
        """What has happened until now, and no more."""
        return self.feed.read_history(reservation, after)

    def read_logs(
        self, caller: Caller, reservation: Reservation, query: LogQuery
    ) -> AsyncGenerator[bytes, None]:
        """What its dev server has written about itself, for as long as the caller's key is good."""
        return self.key_watch.guard(caller, self.server_log.read(reservation, query))

    def list_usage(self, reservation: Reservation, points: int) -> Awaitable[tuple[UsagePoint, ...]]:
        """How much its dev server was used, in so many stretches of time."""
        return self.usages.list_points(reservation.id, points)

    def measure_accuracy(self) -> Awaitable[tuple[Accuracy, ...]]:
        """How good the forecasts of the queue were, by GPU type."""
        return self.forecasts.measure_accuracy()
