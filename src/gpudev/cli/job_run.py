"""One run of `gpu-dev submit`, from the reservation to the results.

Until the command has started there is nothing to lose, and whatever goes wrong gives the GPUs back. From then
on they are given back only when its results are here.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from enum import IntEnum
from pathlib import Path
from typing import NoReturn

import click

from gpudev.cli.errors import INTERRUPTED
from gpudev.cli.output import say
from gpudev.cli.program_name import spell
from gpudev.cli.render.manifest import format_count, format_name
from gpudev.cli.render.times import format_moment, read_now
from gpudev.cli.screen import can_ask
from gpudev.client.dev_server import Box, release
from gpudev.client.errors import ClientError, CommandFailed, NotActive
from gpudev.client.manifest import Wanted, make_manifest
from gpudev.client.session import Client
from gpudev.client.ssh import id8
from gpudev.client.submission import BY_TIME, BY_USER, Result, Submission
from gpudev.texts.vocabulary import EventKind, Status
from gpudev.wire.jobs import JobDetail, JobEvent, SubmitRequest


class Choice(IntEnum):
    """What Ctrl-C may mean, in the order in which it is asked."""

    STOP = 0
    LEAVE = 1
    CONTINUE = 2


_CHOICES = (
    "stop it and fetch its results",
    "leave it running, and fetch its results later",
    "continue",
)


class Terminated(KeyboardInterrupt):
    """Ended politely by a program, a CI say: nobody is there to be asked."""


@dataclass(frozen=True, slots=True)
class Order:
    """What is to be run, and what becomes of it."""

    command: str
    folder: Path
    results: Path
    wanted: Wanted
    grace: timedelta
    keep_alive: bool = False


class JobRun:
    def __init__(self, client: Client, order: Order) -> None:
        self._client = client
        self._order = order
        self._id = ""
        self._sent: frozenset[str] = frozenset()
        self._is_stopped = False
        """By the person here."""

    def run(self, request: SubmitRequest, words: str) -> int:
        """The exit code of the command, or of what happened instead."""
        with _terminated_politely():
            self._id = self._client.reserve(request).reservation_id
            say(f"Asked for {words}: reservation {self._short}.")
            try:
                submission = self._start()
            except KeyboardInterrupt:
                self._release()
                return INTERRUPTED
            except ClientError:
                self._release()
                raise
            return self._follow(submission)

    @property
    def _short(self) -> str:
        return id8(self._id)

    def _start(self) -> Submission:
        self._warn_of_home(self._client.get(self._id))
        job = self._client.wait_until(self._id, {Status.ACTIVE}, tell=_tell)
        submission = Submission(Box(self._client, job), say, self._order.wanted, self._order.grace)
        # Once more: what changed while it waited is sent as it is now.
        manifest = make_manifest(self._order.folder, self._order.wanted)
        self._sent = frozenset(entry.path for entry in manifest.files)
        say(f"Sending {format_name(str(manifest.folder))}: {format_count(manifest)}.")
        submission.send(manifest)
        say(f"Running: {self._order.command}")
        submission.start(self._order.command)
        return submission

    def _warn_of_home(self, job: JobDetail) -> None:
        if job.disk_name is None:
            why = f" {job.warning}" if job.warning else ""
            say(
                "Warning: its home is not kept. Files that are not fetched before the reservation ends are "
                f"lost.{why}"
            )

    def _follow(self, submission: Submission) -> int:
        while True:
            try:
                return self._end(submission, self._wait_for_end(submission))
            except KeyboardInterrupt as interrupt:
                choice = self._ask(interrupt)
            if choice is Choice.LEAVE:
                self._leave(submission)
                return INTERRUPTED
            if choice is Choice.STOP:
                self._is_stopped = True

    def _wait_for_end(self, submission: Submission) -> Result:
        """`NotActive` if the reservation ends before the command does, with where its files are."""
        try:
            if self._is_stopped:
                say("Stopping the command. Ctrl-C leaves it to itself.")
                submission.stop(BY_USER)
            return submission.follow(write_output)
        except CommandFailed:
            # It is gone. What it had written is not.
            self._fetch(submission)
            self._give_back()
            raise
        except NotActive as error:
            self._raise_with_place(submission, error)

    def _ask(self, interrupt: KeyboardInterrupt) -> Choice:
        """Nothing is lost in any case. Without a person here it is stopped; a second Ctrl-C leaves it."""
        if self._is_stopped:
            return Choice.LEAVE
        if isinstance(interrupt, Terminated) or not can_ask():
            return Choice.STOP
        from gpudev.cli.terminal.prompts import ask_one

        try:
            return Choice(ask_one(f"\nWhat about the command in reservation {self._short}?", _CHOICES))
        except (click.Abort, KeyboardInterrupt):
            return Choice.LEAVE

    def _end(self, submission: Submission, result: Result) -> int:
        if result.stopped == BY_TIME:
            say("The reservation is about to end, so the command was stopped.")
        say(f"The command ended with exit code {result.exit_code}.")
        self._fetch(submission)
        if self._order.keep_alive:
            say(spell(f"Reservation {self._short} is kept. Connect with: gpu-dev connect {self._short}"))
        else:
            submission.delete()
            self._give_back()
        return INTERRUPTED if self._is_stopped else result.exit_code

    def _fetch(self, submission: Submission) -> None:
        """If the results cannot be fetched, nothing is given back."""
        folder = self._order.results
        try:
            placed = submission.fetch(folder, self._sent.__contains__)
        except CommandFailed as error:
            error.hint = f"Reservation {self._short} is kept. {self._tell_place(submission)}"
            raise
        except NotActive as error:
            self._raise_with_place(submission, error)
        if placed.count:
            say(f"What is new or changed is in {format_name(str(folder.resolve()))}.")
        else:
            say("No file is new or changed.")
        if placed.aside_folder is not None:
            say(
                f"{len(placed.aside)} of them would have replaced something that was not sent. "
                f"They are in {format_name(str(placed.aside_folder))}."
            )

    def _leave(self, submission: Submission) -> None:
        box = submission.box
        until = f" until {format_moment(box.expires_at, read_now())}" if box.expires_at else ""
        say(f"\nThe command goes on in reservation {self._short}{until}.")
        say(spell(f"See its output with: gpu-dev logs -f {self._short}"))
        say(spell(self._tell_place(submission)))
        say(spell(f"End it with: gpu-dev cancel {self._short}"))

    def _tell_place(self, submission: Submission) -> str:
        files = f"{submission.place}/files"
        kept = submission.box.details.disk_name
        there = f'on your disk "{kept}", in' if kept else "in"
        return (
            f"What the command writes is {there} {files} there. "
            f"Copy it with: gpu-dev cp {self._short}:{files} ."
        )

    def _raise_with_place(self, submission: Submission, error: NotActive) -> NoReturn:
        disk = submission.box.details.disk_name
        if disk is not None:
            files = f"{submission.place}/files"
            error.hint = (
                f'What the command wrote is on your disk "{disk}", in {files}. '
                f"To fetch it: gpu-dev reserve --disk {disk}, then gpu-dev cp ID:{files} ."
            )
        raise error

    def _release(self) -> None:
        if self._order.keep_alive:
            say(spell(f"\nReservation {self._short} goes on. Cancel it with: gpu-dev cancel {self._short}"))
        else:
            self._give_back()

    def _give_back(self) -> None:
        release(self._client, self._id)
        say(f"Gave {self._short} back.")


def _tell(event: JobEvent) -> None:
    """We have said ourselves what was asked for."""
    if event.kind != EventKind.SUBMITTED:
        say(event.message)


def write_output(piece: bytes) -> None:
    """What the command wrote, byte for byte."""
    sys.stdout.buffer.write(piece)
    sys.stdout.buffer.flush()


@contextmanager
def _terminated_politely() -> Iterator[None]:
    def end(_number: int, _frame: object) -> None:
        raise Terminated

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
