"""Routes of one's own API keys."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Response

from gpudev.api import segments  # noqa: F401 - the kind of parameter `key`
from gpudev.api.context import App, Caller
from gpudev.api.encoding import json_response, secret_response
from gpudev.api.problems import OF_EVERY_CALLER, problems
from gpudev.texts.fact import fact
from gpudev.texts.sentences import say
from gpudev.wire.identity import KeyInfo, KeyList, RevokedKey, RotatedKey
from gpudev.wire.text import Lookup

router = APIRouter(prefix="/v1/keys", tags=["identity"], responses=OF_EVERY_CALLER)

Prefix = Annotated[Lookup, Path(description="The first 8 characters of the key.")]


@router.post("/rotate", response_model=RotatedKey, responses=problems(409))
async def rotate_key(app: App, caller: Caller) -> Response:
    """A new key in the place of the one that asks, which goes on working for a moment.

    It ends with the login at the latest. A key has one successor: who asks again with the same key is
    answered 409 `key_has_successor`, and logs in again if the first answer was lost.
    """
    key = await app.identity.rotate_key(caller)
    answer = RotatedKey(
        api_key=key.api_key,
        key_prefix=key.prefix,
        user_id=key.user.user_id,
        username=key.user.username,
        expires_at=key.expires_at,
    )
    return secret_response(answer)


@router.get("", response_model=KeyList)
async def list_keys(app: App, caller: Caller) -> Response:
    """One's own keys, newest first; of each only what tells it from the others."""
    keys = [
        KeyInfo(
            key_prefix=key.prefix,
            created_at=key.created_at,
            expires_at=key.expires_at,
            is_active=key.is_active,
            is_current=key.is_current,
            last_used_at=key.last_used_at,
        )
        for key in await app.identity.list_keys(caller)
    ]
    return json_response(KeyList(keys=keys))


@router.delete("/{prefix:key}", response_model=RevokedKey, responses=problems(404, 409))
async def revoke_key(app: App, caller: Caller, prefix: Prefix) -> Response:
    """End one of one's own keys. One that has ended already stays so."""
    await app.identity.revoke_key(caller, prefix)
    return json_response(RevokedKey(key_prefix=prefix, message=say(fact("key_revoked_now", prefix=prefix))))
