"""AWS: what STS says of a signed login, what EC2 and S3 refuse, and what an operator does about it."""

from __future__ import annotations

from gpudev.texts.template import Text, Values

_LOG_IN = "Log in again with: gpu-dev login"
_ADVICE = {
    "UnauthorizedOperation": "give the controller's role the EC2 rights that docs/howto/disks.md lists.",
    "AccessDenied": "give the controller's role the rights that docs/howto/disks.md lists.",
    "AuthFailure": "look at the credentials of the controller.",
    "ExpiredToken": "renew the credentials of the controller.",
    "VolumeLimitExceeded": "raise the account's limit of EBS storage, or remove volumes that nobody needs.",
    "SnapshotLimitExceeded": "raise the account's limit of snapshots.",
    "MaxIOPSLimitExceeded": "raise the account's limit of EBS throughput.",
    "VolumeInUse": "detach the volume.",
    "NoSuchBucket": "make the bucket, or set GPU_DEV_DISK_LISTING_BUCKET to one that there is.",
}
"""By the code of AWS."""


def _advise(values: Values) -> str:
    return _ADVICE.get(values["aws_code"]) or values.fill("look up what AWS means by {aws_code}.")


def _say_status(values: Values) -> str:
    return values.fill("it answers with status {status} {problem}").rstrip()


def _say_refusal(values: Values) -> str:
    return f"AWS does not accept it: {values['problem'] or 'no reason given'}."


def _say_where_to_sign(values: Values) -> str:
    known = values["endpoint"] or "https://sts.amazonaws.com or https://sts.REGION.amazonaws.com"
    return f"Sign for {known}."


TEXTS = {
    # EC2, S3 and Auto Scaling
    "aws_asks_to_wait": Text("AWS asks to wait ({aws_code}): {what}.", hint="Wait."),
    "aws_refused": Text("AWS refused to {what} ({aws_code}): {words}", hint=_advise),
    "aws_silent": Text("AWS does not answer: {words}", hint="Try again in a moment."),
    "scaling_groups_not_listed": Text("AWS does not list its Auto Scaling groups: {words}"),
    # STS
    "own_aws_credentials_unreadable": Text("The server's own AWS credentials cannot be read: {words}."),
    "own_aws_credentials_refused": Text("The server's own AWS credentials: {cause}"),
    "sts_unavailable": Text("STS at {origin} cannot be asked: {why}.", hint="Try again in a moment."),
    "sts_answers_with_status": Text(_say_status),
    "sts_refused": Text(_say_refusal, hint="Check your AWS credentials with: aws sts get-caller-identity"),
    # a signed request
    "sts_other_action": Text("The signed request asks for something else than who signed it.", hint=_LOG_IN),
    "sts_unsigned": Text("The request has no AWS signature (AWS4-HMAC-SHA256) for STS.", hint=_LOG_IN),
    "sts_address_unknown": Text(
        "The signed request is for an address that is not an STS of AWS which this server speaks to.",
        hint=_say_where_to_sign,
    ),
    "sts_headers_odd": Text("The headers of the signed request are too many, too long or odd.", hint=_LOG_IN),
    "sts_headers_unsigned": Text("The signature does not cover: {headers}.", hint=_LOG_IN),
    "sts_header_extra": Text("The signature covers what is not wanted: {header}.", hint=_LOG_IN),
    "sts_header_missing": Text("A signed header is not there: {header}.", hint=_LOG_IN),
    "sts_host_differs": Text("The host header of the signed request differs from its address.", hint=_LOG_IN),
    "sts_other_server": Text(
        'The login was signed for the server "{server}", which is not this one.',
        hint="Use the server's public name in GPU_DEV_API_URL. "
        "Operators list the names in GPU_DEV_PUBLIC_NAMES.",
    ),
    "sts_time_unreadable": Text("The signing time of the request cannot be read.", hint=_LOG_IN),
    "sts_too_old": Text(
        "The login was not signed within the last {life:duration}.", hint="Check this machine's clock."
    ),
}
