"""What goes wrong with the cluster, in the words of the storage port."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from gpudev.domain.errors import ClusterUnavailable, Defect, StorageRefused, StorageUnavailable

_ROLES = "give the service account the roles in deploy/kubernetes/rbac-disks.yaml."


@contextmanager
def translated_errors(what: str) -> Iterator[None]:
    """No answer is `StorageUnavailable`; what is not allowed or not accepted is `StorageRefused`."""
    try:
        yield
    except ClusterUnavailable as error:
        if error.hint:
            raise StorageRefused(f"The cluster will not {what}. {error.message}", hint=_ROLES) from error
        raise StorageUnavailable(f"The cluster does not {what}. {error.message}", hint="Wait.") from error
    except Defect as error:
        advice = "look at the classes in docs/howto/disks.md and at what the driver can do."
        raise StorageRefused(f"The cluster will not {what}. {error.message}", hint=advice) from error


def refused(message: str, advice: str) -> StorageRefused:
    return StorageRefused(message, hint=advice)


def missing(what: str) -> StorageUnavailable:
    return StorageUnavailable(f"{what} is not there.", hint="Wait.")
