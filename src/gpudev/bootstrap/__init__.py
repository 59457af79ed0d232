"""Settings to adapters to application: the one package that knows everybody.

There are two graphs. `api` and `controller` each make one process of the service, on the `foundation`
that they share. `one_machine` runs those processes, with a PostgreSQL of their own, on one machine
(`control_plane`). The commands that reach in here know nothing of the server but this package.
"""

from __future__ import annotations

from gpudev.domain.errors import GpuDevError as Failure

__all__ = ["Failure"]
