"""Reservations as JSON for the wire, each made once and kept for as long as nothing of it is written.

Clients list again and again what has mostly ended long ago. A list is therefore asked for by marks (see
`ports.reservations.Mark`), and only what is not kept here under its mark is read and put into JSON. A mark
stands for the same in every process, so that nobody has to be told when something changes.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from datetime import datetime, tzinfo
from typing import NamedTuple
from uuid import UUID

from fastapi import Request
from orjson import Fragment

from gpudev.api import views
from gpudev.api.encoding import encode
from gpudev.app.application import Application
from gpudev.app.identity import Visitor
from gpudev.app.reservations import Mark, Marked
from gpudev.domain.errors import NotFound
from gpudev.domain.names import ReservationId

_ID_BYTES = 16
MAX_DOCUMENTS = 10_000
"""Some 10 MB. What was not asked for the longest is forgotten first."""


class _Kept(NamedTuple):
    document: Fragment
    until: datetime | None
    """When it changes by itself; None: never."""


class JobJsonCache:
    def __init__(self, app: Application, max_documents: int = MAX_DOCUMENTS) -> None:
        self._app = app
        self._max_documents = max_documents
        self._kept: OrderedDict[tuple[Mark, tzinfo], _Kept] = OrderedDict()
        self._marks: dict[tuple[ReservationId, tzinfo], Mark] = {}
        """The newest mark under which each reservation is kept."""

    async def find(self, visitor: Visitor, reservation_id: ReservationId, zone: tzinfo) -> Fragment:
        """The one with this very id; who asks is found out in the same statement."""
        known = self._marks.get((reservation_id, zone))
        document = self._find(known, zone, self._app.now()) if known else None
        news = await self._app.reservations.find_news(visitor, reservation_id, known if document else None)
        if news is not None:
            return self._make(news, self._app.now(), zone)
        if document is None:
            raise NotFound("reservation_not_found", text=reservation_id)
        return document

    async def of(self, marks: Sequence[Mark], zone: tzinfo) -> list[Fragment]:
        """In the same order. What was changed in between is shown as it is now; what is gone is left out."""
        now = self._app.now()
        documents = {mark: self._find(mark, zone, now) for mark in marks}
        if unknown := [mark for mark, document in documents.items() if document is None]:
            documents |= await self._read(unknown, zone)
        return [document for document in documents.values() if document is not None]

    def _find(self, mark: Mark, zone: tzinfo, now: datetime) -> Fragment | None:
        kept = self._kept.get((mark, zone))
        if kept is None or (kept.until is not None and now >= kept.until):
            return None
        self._kept.move_to_end((mark, zone))
        return kept.document

    async def _read(self, unknown: Sequence[Mark], zone: tzinfo) -> dict[Mark, Fragment]:
        found = await self._app.reservations.find_marked(unknown)
        now = self._app.now()
        return {asked: self._make(marked, now, zone) for asked, marked in found.items()}

    def _make(self, marked: Marked, now: datetime, zone: tzinfo) -> Fragment:
        document = Fragment(encode(views.job_detail(marked.reservation, self._app.cluster, now, zone)))
        if marked.mark:
            self._kept[marked.mark, zone] = _Kept(document, views.changes_at(marked.reservation, now))
            self._marks[marked.reservation.id, zone] = marked.mark
            if len(self._kept) > self._max_documents:
                self._forget_oldest()
        return document

    def _forget_oldest(self) -> None:
        (mark, zone), _ = self._kept.popitem(last=False)
        reservation_id = ReservationId(str(UUID(bytes=mark[:_ID_BYTES])))
        if self._marks.get((reservation_id, zone)) == mark:
            del self._marks[reservation_id, zone]


def job_json_cache_of(request: Request) -> JobJsonCache:
    cache: JobJsonCache = request.app.state.job_json_cache
    return cache
