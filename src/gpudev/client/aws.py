"""Logging in by AWS: a request that asks STS who we are, signed here and sent by the server.

The credentials stay in this process. The signature covers the host name of the server that we were
configured to log in to, so that a server which gets it cannot use it to log in anywhere else.

botocore is imported only here and only when needed: it takes longer to load than all else together.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from gpudev.client.config import AwsPlace
from gpudev.client.errors import LoginFailed
from gpudev.wire.identity import SignedLogin, StsRequest

if TYPE_CHECKING:
    from botocore.credentials import Credentials

PROFILE = "gpu-dev"
ACTION = "Action=GetCallerIdentity&Version=2011-06-15"
CONTENT_TYPE = "application/x-www-form-urlencoded; charset=utf-8"
NONCE_BYTES = 16


def sign_login(server: str, place: AwsPlace) -> SignedLogin:
    """Proof of who we are, for the server of this host name alone and for once."""
    try:
        from botocore.auth import SigV4Auth  # noqa: PLC0415 - see above
        from botocore.awsrequest import AWSRequest  # noqa: PLC0415 - see above
    except ModuleNotFoundError as error:
        raise LoginFailed(
            f"To log in to {server} by AWS, botocore is needed, and it is not installed.",
            hint="Install it with: pip install 'gpu-dev[aws]'. For a server on this machine: gpu-dev up",
            code="aws_not_installed",
        ) from error
    headers = {
        "Content-Type": CONTENT_TYPE,
        "X-GPU-Dev-Server": server,
        # The time is in whole seconds: without this, two logins of one second would be the same one.
        "X-GPU-Dev-Nonce": os.urandom(NONCE_BYTES).hex(),
    }
    url = find_sts(place)
    request = AWSRequest(method="POST", url=url, data=ACTION, headers=headers)
    SigV4Auth(_find_credentials(server), "sts", place.region).add_auth(request)
    return SignedLogin(sts_request=StsRequest(url=url, headers=dict(request.headers.items()), body=ACTION))


def find_sts(place: AwsPlace) -> str:
    if place.sts_endpoint:
        return f"{place.sts_endpoint.rstrip('/')}/"
    suffix = "amazonaws.com.cn" if place.region.startswith("cn-") else "amazonaws.com"
    return f"https://sts.{place.region}.{suffix}/"


def _find_credentials(server: str) -> Credentials:
    """Those of the profile `gpu-dev` if there is one, else what the usual chain of AWS finds."""
    import botocore.session  # noqa: PLC0415 - see above
    from botocore.exceptions import BotoCoreError  # noqa: PLC0415 - see above

    has_profile = PROFILE in botocore.session.Session().available_profiles
    try:
        credentials = botocore.session.Session(profile=PROFILE if has_profile else None).get_credentials()
        if credentials is not None:
            credentials.get_frozen_credentials()  # an expired login shows here
            return credentials
    except BotoCoreError as error:
        raise LoginFailed(
            f"The AWS credentials cannot be used: {error}.",
            hint=f"Log in to AWS with: aws sso login{f' --profile {PROFILE}' if has_profile else ''}",
            code="no_aws_credentials",
        ) from error
    raise LoginFailed(
        f"To log in to {server}, AWS credentials are needed, and there are none.",
        hint=f"Set up the profile {PROFILE} with: aws configure sso --profile {PROFILE}",
        code="no_aws_credentials",
    )
