"""Everything that may go wrong, as one tree.

    GpuDevError              code, and a fact: what happened to which thing; `texts` has its sentence and hint
    ├── Rejected             the request cannot be granted as it stands; asking again changes nothing
    │   ├── Invalid          a value is out of its range or not a known choice
    │   ├── NotFound         no such thing, or it is somebody else's
    │   ├── NotAllowed       the caller may not do this
    │   │   └── ProofNeeded  not before something more is shown; not to be counted against the caller
    │   ├── Unauthenticated  the caller has not shown who they are
    │   ├── Conflict         it clashes with what exists: a taken name, a disk in use
    │   ├── Gone             it was there, and was deleted
    │   ├── IllegalMove      the reservation is in a state that does not allow it
    │   ├── QuotaExceeded    the caller's share is used up
    │   └── TooManyRequests  the caller asks too often; it says when to ask again
    ├── Unavailable          a part we need does not answer; asking again later may work
    │   ├── StoreUnavailable
    │   ├── ClusterUnavailable
    │   ├── IdentityUnavailable
    │   ├── KeysUnavailable
    │   ├── StorageUnavailable
    │   ├── StorageRefused   the storage answers, and will not: an operator has to do something first
    │   └── NoCapacity       the cluster answers, and there is no room
    ├── Stale                somebody else moved first; drop the result and look again
    └── Defect               an error of ours

An `Unavailable` never counts as a failed try of a controller; a `Defect`, like any foreign exception,
does.
"""

from __future__ import annotations

from datetime import timedelta

from gpudev.texts.fact import Value, fact
from gpudev.texts.sentences import advise, say


class GpuDevError(Exception):
    """An error as data: the key of its text with the data of this case, and a stable code for programs.

    `str(error)`, `message` and `hint` are the words for logs and tests, with times in UTC. The API renders
    `fact` for the zone of the caller.
    """

    default_code = "error"

    def __init__(self, key: str, /, *, code: str = "", **data: Value) -> None:
        self.fact = fact(key, **data)
        self.message = say(self.fact)
        self.code = code or self.default_code
        super().__init__(self.message)

    @property
    def hint(self) -> str:
        return advise(self.fact)


class Rejected(GpuDevError):
    default_code = "rejected"


class Invalid(Rejected):
    default_code = "invalid"


class NotFound(Rejected):
    default_code = "not_found"


class NotAllowed(Rejected):
    default_code = "not_allowed"


class ProofNeeded(NotAllowed):
    default_code = "proof_needed"


class Unauthenticated(Rejected):
    default_code = "unauthenticated"


class Conflict(Rejected):
    default_code = "conflict"


class Gone(Rejected):
    default_code = "gone"


class IllegalMove(Rejected):
    default_code = "illegal_move"


class QuotaExceeded(Rejected):
    default_code = "quota_exceeded"


class TooManyRequests(Rejected):
    default_code = "too_many_requests"

    def __init__(self, key: str, /, *, retry_after: timedelta, code: str = "", **data: Value) -> None:
        super().__init__(key, code=code, **data)
        self.retry_after = retry_after


class Unavailable(GpuDevError):
    default_code = "unavailable"

    def __init__(
        self, key: str, /, *, code: str = "", retry_after: timedelta | None = None, **data: Value
    ) -> None:
        super().__init__(key, code=code, **data)
        self.retry_after = retry_after
        """When it may work again, where that is known."""


class StoreUnavailable(Unavailable):
    default_code = "store_unavailable"


class ClusterUnavailable(Unavailable):
    default_code = "cluster_unavailable"


class IdentityUnavailable(Unavailable):
    default_code = "identity_unavailable"


class KeysUnavailable(Unavailable):
    default_code = "keys_unavailable"


class StorageUnavailable(Unavailable):
    default_code = "storage_unavailable"


class StorageRefused(Unavailable):
    default_code = "storage_refused"


class NoCapacity(Unavailable):
    default_code = "no_capacity"


class Stale(GpuDevError):
    default_code = "stale"


class Defect(GpuDevError):
    default_code = "internal_error"
