"""Why somebody is not let in: logins, API keys, SSH keys, AWS and GitHub."""

from __future__ import annotations

from gpudev.texts.template import Text, Values

_OPERATOR = "Ask your operator."
_LOG_IN_AGAIN = "Log in again: any gpu-dev command does it by itself."
_PROVE = "Log in with gpu-dev 0.4 or newer: gpu-dev login --github-user NAME. Older ones work after that."
_WAIT = "Wait for Retry-After seconds."

_PUBLIC_KEYS = {
    "no_public_key": Text(
        "No SSH public key was given, so nobody could log in.", hint="Make one with: ssh-keygen -t ed25519"
    ),
    "no_public_key_and_none_at_github": Text(
        "No SSH public key was sent, and GitHub has none of {github_user}, so nobody could log in.",
        hint="Add one at https://github.com/settings/keys, or make one with: ssh-keygen -t ed25519",
    ),
    "too_many_public_keys": Text("More than {most} SSH public keys were given."),
    "bad_public_key": Text(
        '"{text}" is not an SSH public key that is accepted.',
        hint="Use ed25519, rsa, ecdsa or sk- keys in the form of a .pub file.",
    ),
}

_API_KEYS = {
    "route_needs_a_key": Text(
        "This route needs an API key.", hint="Send it as: Authorization: Bearer <api key>"
    ),
    "tunnel_needs_a_key": Text("A tunnel needs an API key.", hint="Use: gpu-dev ssh-proxy ID"),
    "not_an_api_key": Text("This is not an API key.", hint=_LOG_IN_AGAIN),
    "api_key_unknown": Text("The API key is unknown, expired or revoked.", hint=_LOG_IN_AGAIN),
    "api_key_asks_too_often": Text("This API key asks too often.", hint=_WAIT),
    "too_many_wrong_keys": Text("Too many wrong API keys came from this address.", hint=_WAIT),
    "key_is_named_by_prefix": Text(
        "A key is named by its first {length} characters.", hint="Yours are listed by GET /v1/keys."
    ),
}

_LOGIN = {
    "local_login_off": Text("This server has no local login.", hint="Log in with: gpu-dev login"),
    "login_proof_too_old": Text("The login proof is too old.", hint="Check this machine's clock."),
    "login_proof_does_not_fit": Text(
        "The login proof does not fit the server's login file.",
        hint="Somebody else's gpu-dev may answer at this address. Start your own with: gpu-dev up",
    ),
    "login_proof_replayed": Text("The login proof was used before."),
    "too_many_failed_logins": Text(
        "Too many logins from this address have failed, and so did this one.",
        hint="Check with what you log in. A correct login is let in at any time.",
    ),
    "user_disabled": Text("The user {username} is disabled.", hint=_OPERATOR),
    "username_taken": Text("The username {username} belongs to somebody else than {arn}.", hint=_OPERATOR),
    "bad_admin": Text(
        '"{text}" in GPU_DEV_ADMINS names no identity: a username may belong to whoever logs in first.',
        hint="Name the ARN that gpu-dev whoami shows that person, "
        "arn:aws:sts::ACCOUNT:assumed-role/ROLE/NAME; for an account of this machine, local:{text}",
    ),
}

_AWS = {
    "aws_login_on_one_machine": Text(
        "AWS login is off: this server runs on one machine, for its owner.",
        hint="Operators turn it on by naming the accounts that may log in with ALLOWED_AWS_ACCOUNTS.",
    ),
    "aws_login_without_accounts": Text(
        "AWS login is off: this server has no AWS account of its own, and none was named.",
        hint="Operators name the accounts that may log in with ALLOWED_AWS_ACCOUNTS.",
    ),
    "credentials_not_taken": Text(
        "This server does not take AWS credentials, only requests signed with them. Operators allow them "
        "with GPU_DEV_ACCEPT_AWS_CREDENTIALS=true.",
        hint="Update gpu-dev: newer versions keep your credentials on your machine.",
    ),
    "signed_request_replayed": Text(
        "The signed request was used before.", hint="Sign another for each login."
    ),
    "account_not_allowed": Text(
        "{arn} is of AWS account {account}, which may not log in here.",
        hint="Log in with a profile of an account that may; see: aws sts get-caller-identity",
    ),
    "role_not_allowed": Text(
        "{arn} does not have the role {role}.", hint="Log in with a profile that has the role {role}."
    ),
    "identity_is_no_arn": Text('AWS gave "{text}" as an identity, which is no ARN.'),
}

_GITHUB = {
    "bad_github_user": Text(
        '"{name}" is not the name of a GitHub user.', hint="Give the name as it is in github.com/NAME."
    ),
    "github_check_off": Text(
        "This server does not ask who somebody is at GitHub.", hint="Log in with: gpu-dev login"
    ),
    "github_user_needed": Text(
        "This server wants to know which GitHub user {username} is.",
        hint="Say it with: gpu-dev login --github-user NAME",
    ),
    "github_keys_not_read": Text("{cause}", hint="Try again in a moment."),
    "github_user_without_keys": Text(
        "GitHub has no SSH keys of {github_user}, so nobody can sign as {github_user}.",
        hint="Check the name, or add a key at https://github.com/settings/keys",
    ),
    "github_challenge_unknown": Text(
        "The challenge is unknown, too old, used before or somebody else's.",
        hint="Log in again with: gpu-dev login",
    ),
    "github_user_taken": Text(
        "The GitHub user {github_user} is somebody else than {username} here.", hint=_OPERATOR
    ),
    "github_proof_needed": Text(
        "Which GitHub user {username} is has not been proved to this server yet.", hint=_PROVE
    ),
    "github_proof_expired": Text(
        "That {username} is {github_user} at GitHub was proved too long ago.", hint=_PROVE
    ),
    "github_invitation_open": Text(
        "The GitHub user {github_user} is invited to {organisation} and has not accepted yet.",
        hint="Accept the invitation at https://github.com/orgs/{organisation}/invitation",
    ),
    "github_not_a_member": Text(
        "The GitHub user {github_user} is not a member of {organisation}.",
        hint="Ask an owner of {organisation} to invite you.",
    ),
    "github_not_in_team": Text(
        "The GitHub user {github_user} is not in the team {team} of {organisation}.",
        hint="Ask a maintainer of the team {team} to add you.",
    ),
    "github_no_push_access": Text(
        "The GitHub user {github_user} may not push to {repository}.",
        hint="Ask an owner of {repository} for the right to push.",
    ),
}


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


_AWS_API = {
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


_GITHUB_API = {
    "github_unavailable": Text(
        "GitHub cannot be asked: {why}.", hint="Try again in a moment; if it stays, tell your operator."
    ),
    "github_answers_with_status": Text("it answers the server's own question with status {status}"),
    "github_rate_limited": Text("it wants fewer questions"),
    "github_answer_not_json": Text("its answer is not JSON"),
    "github_answer_unexpected": Text("its answer is not what it should be"),
    "github_keys_unreadable": Text(
        "The SSH keys of the GitHub user {github_user} cannot be read now: {why}",
        hint="Try again in a moment, or send ssh_public_keys.",
    ),
    "github_keys_not_text": Text("the answer is {kind}"),
    # signatures of a challenge
    "github_other_server": Text(
        'The challenge was signed for "{server}", which is not this server.',
        hint="Use the server's public name in GPU_DEV_API_URL. "
        "Operators list the names in GPU_DEV_PUBLIC_NAMES.",
    ),
    "github_key_unknown": Text(
        "The challenge was signed with a key that the GitHub user has not published.",
        hint="Add it at https://github.com/settings/keys, or sign with one that is there.",
    ),
    "github_signature_wrong": Text("The signature is not one of the challenge.", hint=_LOG_IN),
    "github_signature_malformed": Text("The signature cannot be read: {why}.", hint=_LOG_IN),
    "github_signature_not_armoured": Text("it is not in the form that ssh-keygen -Y sign writes"),
    "github_signature_of_other_kind": Text("it is of another kind or version"),
    "github_signature_altered": Text("it is cut or altered"),
    "github_signature_unsupported": Text("it uses what this server does not know"),
}

TEXTS = {**_PUBLIC_KEYS, **_API_KEYS, **_LOGIN, **_AWS, **_GITHUB, **_AWS_API, **_GITHUB_API}
