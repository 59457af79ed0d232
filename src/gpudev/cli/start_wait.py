"""The wait for a start: a reservation is followed until its dev server is there."""

from __future__ import annotations

from gpudev.cli.progress import Progress
from gpudev.cli.render.progress import Picture, format_event, format_waiting, list_waiting, say_why
from gpudev.cli.render.times import read_now
from gpudev.cli.stages import QUEUE, Stages, StageTimes, advance
from gpudev.client.errors import NotActive, Unreachable
from gpudev.client.session import Client
from gpudev.texts.vocabulary import QUEUE_MOVE, TERMINAL, EventKind, Status
from gpudev.wire.jobs import JobDetail, JobEvent

UNTOLD = frozenset({EventKind.SUBMITTED, EventKind.QUEUED})
"""The command has just said the first itself, and the second is told with its place in the queue."""
PATIENCE_SECONDS = 3600.0
"""How long a server that is gone is looked for: whoever waits in a queue may close the laptop meanwhile."""


class Wait:
    """One wait for one reservation. It may be left and gone on with: what was told is not told again."""

    def __init__(
        self,
        client: Client,
        reservation_id: str,
        gpu_type: str,
        times: StageTimes,
        *,
        verbose: bool,
        after: int = 0,
    ) -> None:
        """`after` is the number of an event: what was before it is not told."""
        self.reservation_id = reservation_id
        self._client = client
        self._times = times
        self._verbose = verbose
        self._stages = Stages(gpu_type.lower())
        self._last_number = after
        self._place: JobDetail | JobEvent | None = None
        """What told last where it stands in the queue."""
        self._why = ""
        """Why it waits there."""

    def until_active(self, progress: Progress) -> JobDetail:
        """Tell what happens, and in the queue the place there, which the server tells when it changes."""

        def lose(error: Unreachable) -> None:
            progress.show(Picture("Looking for the server again", (error.message,), plain=error.message))

        events = self._client.events(
            self.reservation_id, after=self._last_number, patience=PATIENCE_SECONDS, on_loss=lose
        )
        for event in events:
            if event is not None:
                self._take(event, progress)
                if event.kind == EventKind.ACTIVE:
                    break
                _check_not_ended(event)
            progress.show(self._picture())
        self._times.remember(self._stages.passed)
        return self._client.get(self.reservation_id)

    def cancel(self) -> None:
        self._client.cancel(self.reservation_id)

    def _take(self, event: JobEvent, progress: Progress) -> None:
        if event.kind == QUEUE_MOVE:
            self._place, self._why = event, event.message
            return
        self._last_number = event.number
        self._place = event if _tells_place(event) else None
        self._why = say_why(event, read_now()) if self._place else ""
        self._stages = advance(self._stages, event)
        if self._verbose or event.kind not in UNTOLD:
            progress.tell(format_event(event, read_now(), verbose=self._verbose))

    def _picture(self) -> Picture:
        stages = self._stages
        if stages.current == QUEUE and (place := self._find_place()).status == Status.QUEUED:
            now, why = read_now(), self._why
            return Picture(stages.title, list_waiting(place, why, now), plain=format_waiting(place, why, now))
        return Picture(stages.title, usual_seconds=self._times.find_usual(stages.current))

    def _find_place(self) -> JobDetail | JobEvent:
        """The server is asked only where the events have not said it."""
        if self._place is None:
            job = self._place = self._client.get(self.reservation_id)
            self._why = job.current_detailed_status or ""
        return self._place


def _tells_place(event: JobEvent) -> bool:
    """Whether the event says where the reservation stands now, or that it waits no longer."""
    if event.kind != EventKind.QUEUED:
        return False
    return event.queue_position is not None or event.status != Status.QUEUED


def _check_not_ended(event: JobEvent) -> None:
    if event.kind in TERMINAL:
        raise NotActive(
            f"The reservation is {event.kind}: {event.message}",
            hint="Ask again with: gpu-dev reserve",
            code=event.reason or "",
        )
