"""What `startup/job.sh` says of the command that runs on a dev server: pure, and total."""

from __future__ import annotations

from gpudev.domain.job import Job, read_job


def read_job_report(said: str) -> Job | None:
    """None where no command was started."""
    head, is_there, output = f"\n{said}".partition("\noutput\n")
    if not is_there:
        return None
    pairs = [line.partition(" ") for line in head.splitlines()]
    values = {name: value.encode(errors="replace") for name, _, value in pairs}
    return read_job(
        values.get("code"),
        values.get("why"),
        output.encode(errors="replace"),
        is_fetched="fetched" in values,
    )
