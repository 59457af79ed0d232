"""Routes of identity."""

from __future__ import annotations

from fastapi import APIRouter, Response

from gpudev.api.context import App
from gpudev.api.encoding import json_response
from gpudev.app.login import LoginProof
from gpudev.domain.errors import NotFound
from gpudev.wire.cluster import LocalLoginRequest, LoginResponse

router = APIRouter(prefix="/v1/auth", tags=["identity"])


@router.post("/local-login", response_model=LoginResponse)
async def local_login(app: App, body: LocalLoginRequest) -> Response:
    """Log in to a server on one's own machine, by proving that one can read its login file."""
    if app.local_login is None:
        raise NotFound("This server has no local login.", hint="Log in with: gpu-dev login")
    key = await app.local_login(LoginProof(body.timestamp, body.nonce, body.proof))
    answer = LoginResponse(
        api_key=key.api_key,
        key_prefix=key.prefix,
        user_id=key.user.user_id,
        username=key.user.username,
        expires_at=key.expires_at,
        ttl_hours=app.local_login.issue_key.ttl_hours,
    )
    return json_response(answer, headers={"Cache-Control": "no-store"})
