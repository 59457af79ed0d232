"""Following a reservation until its dev server is there."""

from __future__ import annotations

from dataclasses import replace

from gpudev.cli.progress import Progress
from gpudev.cli.render.picture import Picture
from gpudev.cli.render.progress import format_event, format_waiting, list_waiting
from gpudev.cli.render.times import read_now
from gpudev.cli.stages import QUEUE, Stages, advance
from gpudev.client.errors import NotActive, Unreachable
from gpudev.client.session import Client
from gpudev.client.stage_times import StageTimes
from gpudev.texts.vocabulary import QUEUE_MOVE, TERMINAL, EventKind, Status
from gpudev.wire.jobs import JobDetail, JobEvent

UNTOLD = frozenset({EventKind.SUBMITTED, EventKind.QUEUED})
"""The command has just said the first itself, and the second is told with its place in the queue."""
PATIENCE_SECONDS = 3600.0
"""How long a server that is gone is looked for: whoever waits in a queue may close the laptop meanwhile."""


class Wait:
    """One wait for one reservation. It may be left and gone on with: what was told is not told again."""

    def __init__(
        self, client: Client, reservation_id: str, gpu_type: str, times: StageTimes, *, verbose: bool
    ) -> None:
        self.reservation_id = reservation_id
        self._client = client
        self._times = times
        self._verbose = verbose
        self._stages = Stages(gpu_type.lower())
        self._last_number = 0
        self._place: JobDetail | None = None
        """Where it stands in the queue, as it was told last."""

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
            self._place = self._place and _move(self._place, event)
            return
        self._last_number = event.number
        self._place = None
        self._stages = advance(self._stages, event)
        if self._verbose or event.kind not in UNTOLD:
            progress.tell(format_event(event, read_now(), verbose=self._verbose))

    def _picture(self) -> Picture:
        stages = self._stages
        if stages.current == QUEUE:
            job = self._place = self._place or self._client.get(self.reservation_id)
            if job.status == Status.QUEUED:
                now = read_now()
                return Picture(stages.title, list_waiting(job, now), plain=format_waiting(job, now))
        return Picture(stages.title, usual_seconds=self._times.find_usual(stages.current))


def _move(job: JobDetail, event: JobEvent) -> JobDetail:
    return replace(
        job,
        queue_position=event.queue_position,
        estimated_start_at=event.estimated_start_at,
        likely_start=event.likely_start,
        current_detailed_status=event.message or None,
    )


def _check_not_ended(event: JobEvent) -> None:
    if event.kind in TERMINAL:
        raise NotActive(
            f"The reservation is {event.kind}: {event.message}",
            hint="Ask again with: gpu-dev reserve",
            code=event.reason or "",
        )
