"""What a route is given: the application, who is calling, and from where."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from gpudev.api.origin import find_address
from gpudev.app import caller
from gpudev.app.application import Application
from gpudev.domain.errors import Unauthenticated

_bearer = HTTPBearer(auto_error=False, description="The API key that a login gave.")


def _application(request: Request) -> Application:
    application: Application = request.app.state.application
    return application


App = Annotated[Application, Depends(_application)]


def _api_key(
    credentials: Annotated[HTTPAuthorizationCredentials | None, Depends(_bearer)],
) -> str:
    if credentials is None:
        raise Unauthenticated(
            "This route needs an API key.", hint="Send it as: Authorization: Bearer <api key>"
        )
    return credentials.credentials


ApiKey = Annotated[str, Depends(_api_key)]


def _address(app: App, request: Request) -> str:
    peer = request.client.host if request.client else None
    return find_address(peer, request.headers.get("X-Forwarded-For"), app.trusted_proxies)


Address = Annotated[str, Depends(_address)]


async def _caller(app: App, api_key: ApiKey, address: Address) -> caller.Caller:
    return await app.admit(api_key, address)


Caller = Annotated[caller.Caller, Depends(_caller)]
