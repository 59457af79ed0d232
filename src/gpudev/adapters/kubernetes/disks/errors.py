"""What goes wrong with the cluster, as errors of the storage port."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from gpudev.domain.errors import ClusterUnavailable, Defect, StorageRefused, StorageUnavailable
from gpudev.texts.fact import Fact


@contextmanager
def translated_errors(what: Fact) -> Iterator[None]:
    """No answer is `StorageUnavailable`; what is not allowed or not accepted is `StorageRefused`."""
    try:
        yield
    except ClusterUnavailable as error:
        if error.fact.key == "cluster_forbidden":
            raise StorageRefused("storage_forbidden", what=what, cause=error.fact) from error
        raise StorageUnavailable("storage_silent", what=what, cause=error.fact) from error
    except Defect as error:
        raise StorageRefused("storage_refused", what=what, cause=error.fact) from error
