"""The command that `gpu-dev submit` runs on a dev server: how it ended, from files that its user can write.

Nothing in these files is to be believed further than that: what is no exit code, or too long, is not known.
"""

from __future__ import annotations

from dataclasses import dataclass

from gpudev.texts.fact import Fact, fact
from gpudev.texts.vocabulary import Outcome, Status

MAX_OUTPUT = 32 * 1024
"""So many bytes of the end of the output are kept."""
_MAX_CODE = 255
_MAX_DIGITS = 3


@dataclass(frozen=True, slots=True)
class Job:
    """What is known of a command that was started."""

    exit_code: int | None = None
    """None: it runs, or was killed together with what would have told."""
    stopped: Outcome | None = None
    """Why it was stopped; None: it was not."""
    is_fetched: bool = False
    """Its owner has its results."""
    output: str = ""

    @property
    def has_ended(self) -> bool:
        return self.exit_code is not None


_STOPS = {b"user": Outcome.STOPPED, b"time": Outcome.TIMED_OUT}


def read_job(code: bytes | None, why: bytes | None, output: bytes, *, is_fetched: bool) -> Job:
    """From the contents of the files; a file that is not there is None."""
    return Job(
        exit_code=_read_code(code),
        stopped=_STOPS.get(why.strip()) if why is not None else None,
        is_fetched=is_fetched,
        output=output[-MAX_OUTPUT:].decode(errors="replace").replace("\0", "\N{REPLACEMENT CHARACTER}"),
    )


def find_outcome(job: Job, status: Status) -> Outcome:
    """What became of a command whose reservation ends, or has ended, with this status."""
    if job.stopped is not None:
        return job.stopped
    if job.exit_code is not None:
        return Outcome.FAILED if job.exit_code else Outcome.SUCCEEDED
    return Outcome.TIMED_OUT if status is Status.EXPIRED else Outcome.STOPPED


def tell_end(job: Job, outcome: Outcome) -> Fact:
    """How the command ended."""
    code = job.exit_code
    match outcome:
        case Outcome.SUCCEEDED | Outcome.FAILED:
            return fact("command_finished", code=code)
        case Outcome.STOPPED:
            return fact("command_stopped", code=code)
        case Outcome.TIMED_OUT:
            return fact("command_timed_out", code=code)


def _read_code(content: bytes | None) -> int | None:
    digits = (content or b"").strip()
    if not digits.isdigit() or len(digits) > _MAX_DIGITS or int(digits) > _MAX_CODE:
        return None
    return int(digits)
