"""Files that are not sent unless somebody names them: keys, tokens, credentials and histories.

A file is judged by its name and place first, and by the beginning of its contents second: a private key has a
header, whatever it is called. Names are compared without their letter case.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from fnmatch import fnmatchcase

SNIFFED_BYTES = 64 * 1024
"""How much of a file is looked at. A key file is smaller than that."""

_PRIVATE_KEY = "private key"
_CREDENTIALS = "credentials"
_TOKEN = "token"  # noqa: S105 - a word for people
_ENVIRONMENT = "environment file"
_HISTORY = "history"

_EXAMPLES = (".env.example", ".env.sample", ".env.template", ".env.dist", ".env.defaults")
"""Made to be shared."""

_NAMES: tuple[tuple[str, tuple[str, ...]], ...] = (
    (
        _PRIVATE_KEY,
        (
            ".ssh",
            ".gnupg",
            "id_rsa*",
            "id_dsa*",
            "id_ecdsa*",
            "id_ed25519*",
            "*.pem",
            "*.key",
            "*.p8",
            "*.p12",
            "*.pfx",
            "*.ppk",
            "*.jks",
            "*.keystore",
            "*.kdbx",
        ),
    ),
    (_ENVIRONMENT, (".env*", "*.env")),
    (
        _CREDENTIALS,
        (
            ".aws",
            ".azure",
            ".boto",
            ".cloudflared",
            ".databrickscfg",
            ".docker",
            ".dockercfg",
            ".git-credentials",
            ".gpu-dev",
            ".huggingface",
            ".kaggle",
            ".kube",
            ".my.cnf",
            ".mylogin.cnf",
            ".netrc",
            ".npmrc",
            ".oci",
            ".password-store",
            ".pgpass",
            ".pypirc",
            ".s3cfg",
            ".snowsql",
            ".vault-token",
            ".wandb",
            "_netrc",
            "application_default_credentials.json",
            "client_secret*.json",
            "credentials",
            "credentials.json",
            "credentials.toml",
            "credentials.y*ml",
            "gcloud",
            "kaggle.json",
            "kubeconfig",
            "kubeconfig.y*ml",
            "rclone.conf",
            "secrets.json",
            "secrets.toml",
            "secrets.y*ml",
            "service-account*.json",
            "service_account*.json",
            "*.kubeconfig",
            "*.tfstate",
            "*.tfstate.backup",
            "*.tfvars",
        ),
    ),
    (
        _TOKEN,
        (
            "token",
            "token.json",
            "token.txt",
            "*.token",
            "*_token",
            "*-token",
            "*_token.txt",
            "*-token.txt",
            "api_key",
            "api_key.txt",
            "apikey",
            "apikey.txt",
            "stored_tokens",
            ".modal.toml",
            ".terraformrc",
        ),
    ),
    (
        _HISTORY,
        (
            ".*_history",
            ".*_history-*",
            ".histfile",
            ".history",
            ".lesshst",
            ".viminfo",
            ".wget-hsts",
            "fish_history",
        ),
    ),
)
_PLACES: tuple[tuple[str, str], ...] = (
    (".cargo/credentials*", _CREDENTIALS),
    (".composer/auth.json", _CREDENTIALS),
    (".config/containers/auth.json", _CREDENTIALS),
    (".config/doctl", _CREDENTIALS),
    (".config/gh", _CREDENTIALS),
    (".config/git/credentials", _CREDENTIALS),
    (".config/op", _CREDENTIALS),
    (".config/wandb", _CREDENTIALS),
    (".gem/credentials", _CREDENTIALS),
    (".m2/settings*.xml", _CREDENTIALS),
    (".streamlit/secrets.toml", _CREDENTIALS),
    (".terraform.d/credentials*", _CREDENTIALS),
)
"""Folder and name: elsewhere such a name means nothing."""

_KEY_HEADER = re.compile(rb"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----|PuTTY-User-Key-File-\d")
_WHOLE_TOKEN = re.compile(
    rb"\s*(?:"
    rb"gh[pousr]_[A-Za-z0-9]{36,}|github_pat_\w{50,}|glpat-[\w-]{20,}|hf_[A-Za-z0-9]{30,}"
    rb"|AKIA[A-Z0-9]{16}|xox[abprs]-[\w-]{20,}|sk-[\w-]{32,}|npm_[A-Za-z0-9]{36}|pypi-[\w-]{50,}"
    rb"|eyJ[\w-]+\.eyJ[\w-]+\.[\w-]+"
    rb")\s*"
)
"""A file that holds a token and nothing else."""


def find_secret_name(path: str) -> str | None:
    """What a file or folder probably is, by its path; None if it is not known for secrets."""
    *folders, name = path.casefold().split("/")
    if name in _EXAMPLES:
        return None
    for kind, patterns in _NAMES:
        if _matches(name, patterns):
            return kind
    parts = [*folders, name]
    for pattern, kind in _PLACES:
        if _ends_with(parts, pattern.split("/")):
            return kind
    return None


def find_secret_content(beginning: bytes) -> str | None:
    """What a file is by its first bytes; see `SNIFFED_BYTES`."""
    if _KEY_HEADER.search(beginning):
        return _PRIVATE_KEY
    return _TOKEN if _WHOLE_TOKEN.fullmatch(beginning) else None


def _matches(name: str, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def _ends_with(parts: Sequence[str], pattern: Sequence[str]) -> bool:
    tail = parts[-len(pattern) :]
    return len(tail) == len(pattern) and all(map(fnmatchcase, tail, pattern))
