"""What AWS answers when something went wrong, as errors of ours: which codes pass by themselves."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from botocore.exceptions import BotoCoreError, ClientError

from gpudev.domain.errors import StorageRefused, StorageUnavailable
from gpudev.texts.fact import Fact

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

GONE = frozenset({"InvalidVolume.NotFound", "InvalidSnapshot.NotFound"})
"""Of an answer to a deletion: it is done."""


def code_of(error: ClientError) -> str:
    return str(error.response.get("Error", {}).get("Code", ""))


@contextmanager
def translated_errors(what: Fact) -> Iterator[None]:
    """No answer and "later" are `StorageUnavailable`, a refusal is `StorageRefused` with what to do."""
    try:
        yield
    except ClientError as error:
        code = code_of(error)
        words = str(error.response.get("Error", {}).get("Message", "")) or code
        if code in _PASSING:
            raise StorageUnavailable("aws_asks_to_wait", aws_code=code, what=what) from error
        raise StorageRefused("aws_refused", aws_code=code, what=what, words=words) from error
    except BotoCoreError as error:
        raise StorageUnavailable("aws_silent", words=str(error)) from error
