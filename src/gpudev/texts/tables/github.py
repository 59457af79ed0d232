"""GitHub: its API and its keys, and the signatures that users log in with."""

from __future__ import annotations

from gpudev.texts.template import Text

_LOG_IN = "Log in again with: gpu-dev login"

TEXTS = {
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
