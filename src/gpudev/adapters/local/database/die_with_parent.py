"""Becomes another program that ends when its parent ends.

    die_with_parent.py PARENT_PID [NAME=VALUE…] -- PROGRAM [ARG…]

A script, run by path with a bare interpreter, that asks the kernel for SIGINT at the parent's death and
then turns into PROGRAM. It stands between fork and exec because running Python there, inside the forked
copy of a process with threads (`preexec_fn`), can hang. The request survives `exec`. PROGRAM gets exactly the
environment named here, while this interpreter has the one that it may need itself.
"""

from __future__ import annotations

import ctypes
import os
import sys

_PR_SET_PDEATHSIG = 1
_SIGINT = 2  # written out: importing `signal` costs more than the rest of this script


def main() -> None:
    end = sys.argv.index("--")
    parent, command = int(sys.argv[1]), sys.argv[end + 1 :]
    environment = dict(pair.split("=", maxsplit=1) for pair in sys.argv[2:end])
    if ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, _SIGINT, 0, 0, 0) != 0:
        sys.exit(f"prctl(PR_SET_PDEATHSIG): {os.strerror(ctypes.get_errno())}")
    if os.getppid() != parent:  # it died before the request was made, so no signal will ever come
        sys.exit("parent ended")
    os.execve(command[0], command, environment)  # noqa: S606  # no shell is what is wanted


if __name__ == "__main__":
    main()
