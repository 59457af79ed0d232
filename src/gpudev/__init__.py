"""gpu-dev lends GPU machines to the developers of a team.

    with gpudev.reserve("h100", gpus=2, hours=4) as box:
        print(box.run("nvidia-smi").stdout)

What is named here is loaded when it is first used, so that `import gpudev` costs nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

__version__ = "0.4.0"

if TYPE_CHECKING:
    from gpudev.client import aio as aio
    from gpudev.client import errors as errors
    from gpudev.client.dev_server import Box as Box
    from gpudev.client.dev_server import attach as attach
    from gpudev.client.dev_server import reserve as reserve
    from gpudev.client.errors import ClientError as ClientError
    from gpudev.client.programs import Finished as Finished
    from gpudev.client.session import Client as Client
    from gpudev.client.session import connect as connect

_PLACES = {
    "aio": "gpudev.client.aio",
    "errors": "gpudev.client.errors",
    "Box": "gpudev.client.dev_server",
    "attach": "gpudev.client.dev_server",
    "reserve": "gpudev.client.dev_server",
    "ClientError": "gpudev.client.errors",
    "Finished": "gpudev.client.programs",
    "Client": "gpudev.client.session",
    "connect": "gpudev.client.session",
}


def __getattr__(name: str) -> object:
    place = _PLACES.get(name)
    if place is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module  # noqa: PLC0415 - see above

    module = import_module(place)
    return module if place.endswith(f".{name}") else getattr(module, name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_PLACES])
