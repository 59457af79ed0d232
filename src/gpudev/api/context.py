"""What a route is given: the application, and who is calling."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from gpudev.app.application import Application
from gpudev.domain.errors import Unauthenticated
from gpudev.ports.store import User

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


async def _caller(app: App, api_key: ApiKey) -> User:
    return await app.authenticate(api_key)


Caller = Annotated[User, Depends(_caller)]
