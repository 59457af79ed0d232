"""What a route is given: the application, who is calling, from where, and the parts of its path.

All of it is `async`, also what waits for nothing: FastAPI sends everything else through a thread.
"""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Request
from fastapi.security import HTTPBearer
from starlette.convertors import StringConvertor, register_url_convertor
from typing_extensions import override

from gpudev.api.client_address import find_address
from gpudev.app import identity
from gpudev.app.application import Application
from gpudev.domain.errors import Unauthenticated
from gpudev.domain.names import RESERVED_NAMES

OWN_SOCKET = "unix socket"
"""The address of those who come by the socket of the machine's owner."""
CONNECTION = "connection"
"""Where the server puts what counts the request's connection, in the state of the request."""


def application_of(request: Request) -> Application:
    """For the routes that are asked most: a dependency costs more than it looks."""
    application: Application = request.app.state.application
    return application


async def _application(request: Request) -> Application:
    return application_of(request)


App = Annotated[Application, Depends(_application)]


async def _address(request: Request) -> str:
    application = application_of(request)
    if request.client is None:
        return OWN_SOCKET
    return find_address(
        request.client.host, request.headers.get("X-Forwarded-For"), application.trusted_proxies
    )


Address = Annotated[str, Depends(_address)]


class _Door(HTTPBearer):
    """The scheme of the OpenAPI document; it gives whoever comes with a key, in one step a request."""

    @override
    async def __call__(self, request: Request) -> identity.Visitor:  # type: ignore[override]  # more
        scheme, _, key = request.headers.get("Authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not key:
            raise Unauthenticated("route_needs_a_key")
        identity = application_of(request).identity
        connection = request.scope.get("state", {}).get(CONNECTION)
        if connection is None:
            return await identity.meet(key, await _address(request))
        return await identity.meet(key, await _address(request), connection.claim)


Visitor = Annotated[
    identity.Visitor,
    Depends(_Door(scheme_name="HTTPBearer", description="The API key that a login gave.")),
]
"""For a route that finds out who is asking together with what is asked for."""


async def _caller(app: App, visitor: Visitor) -> identity.Caller:
    return await app.identity.authenticate(visitor)


Caller = Annotated[identity.Caller, Depends(_caller)]


class JobSegment(StringConvertor):
    """A path that is written out comes before one with a parameter, as OpenAPI wants it.

    Without it `GET /v1/jobs/submit` would look for a reservation of that name.
    """

    regex = f"(?!(?:{'|'.join(sorted(RESERVED_NAMES))})$)[^/]+"


class KeySegment(StringConvertor):
    """The same for keys."""

    regex = "(?!rotate$)[^/]+"


register_url_convertor("job", JobSegment())
register_url_convertor("key", KeySegment())
