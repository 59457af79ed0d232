"""What AWS answers when something went wrong, in our own words: the one table of its codes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from botocore.exceptions import BotoCoreError, ClientError

from gpudev.domain.errors import StorageRefused, StorageUnavailable

_PASSING = frozenset(
    {
        "RequestLimitExceeded",
        "Throttling",
        "ThrottlingException",
        "RequestThrottled",
        "SlowDown",
        "SnapshotCreationPerVolumeRateExceeded",
        "ConcurrentSnapshotLimitExceeded",
        "InsufficientVolumeCapacity",
        "VolumeModificationRateExceeded",
        "IncorrectModificationState",
        "IncorrectState",
        "InternalError",
        "InternalFailure",
        "ServerInternal",
        "ServiceUnavailable",
        "Unavailable",
        "RequestExpired",
        "RequestTimeout",
    }
)
"""Asking again, later, is all there is to do."""

_ADVICE = {
    "UnauthorizedOperation": "give the controller's role the EC2 rights that docs/howto/disks.md lists.",
    "AccessDenied": "give the controller's role the rights that docs/howto/disks.md lists.",
    "AuthFailure": "look at the credentials of the controller.",
    "ExpiredToken": "renew the credentials of the controller.",
    "VolumeLimitExceeded": "raise the account's limit of EBS storage, or remove volumes that nobody needs.",
    "SnapshotLimitExceeded": "raise the account's limit of snapshots.",
    "MaxIOPSLimitExceeded": "raise the account's limit of EBS throughput.",
    "VolumeInUse": "detach the volume.",
    "NoSuchBucket": "make the bucket, or set GPU_DEV_DISK_LISTING_BUCKET to one that there is.",
}

GONE = frozenset({"InvalidVolume.NotFound", "InvalidSnapshot.NotFound"})
"""Of an answer to a deletion: it is done."""


def code_of(error: ClientError) -> str:
    return str(error.response.get("Error", {}).get("Code", ""))


@contextmanager
def translated_errors(what: str) -> Iterator[None]:
    """No answer and "later" are `StorageUnavailable`, a refusal is `StorageRefused` with what to do."""
    try:
        yield
    except ClientError as error:
        code = code_of(error)
        words = str(error.response.get("Error", {}).get("Message", "")) or code
        if code in _PASSING:
            raise StorageUnavailable(f"AWS asks to wait ({code}): {what}.", hint="Wait.") from error
        advice = _ADVICE.get(code, f"look up what AWS means by {code}.")
        raise StorageRefused(f"AWS refused to {what} ({code}): {words}", hint=advice) from error
    except BotoCoreError as error:
        raise StorageUnavailable(f"AWS does not answer: {error}", hint="Try again in a moment.") from error
