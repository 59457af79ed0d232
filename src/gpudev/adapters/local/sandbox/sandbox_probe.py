"""A program that ends with 0 if a sandbox can be made and entered here by the `bwrap` that it is given.

A program of its own because entering namespaces is for a process with one thread that ends soon after.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from gpudev.adapters.local.sandbox.holder import Namespaces, SandboxFailed, enter_sandbox, start_holder
from gpudev.adapters.local.sandbox.sandbox import Sandbox, choose_user_id


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="gpu-dev-") as directory:
        return _try_in(Path(directory))


def _try_in(directory: Path) -> int:
    home = directory / "home"
    home.mkdir()
    sandbox = Sandbox("gpu-dev-probe", choose_user_id("0" * 8), "/bin/sh", home, home, directory)
    if sandbox.is_made_by_root:
        os.chown(home, sandbox.user_id, sandbox.user_id)
    try:
        holder = start_holder(sandbox, sys.argv[1])
        namespaces = Namespaces(holder.init_pid)
        namespaces.enter_for_children()
        child = os.fork()
        if child == 0:
            enter_sandbox(namespaces, sandbox)
            master, _ = os.openpty()
            os._exit(0 if os.isatty(master) else 1)
        _, status = os.waitpid(child, 0)
        os.close(holder.lifeline)
        holder.monitor.wait()
    except (OSError, SandboxFailed) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return os.waitstatus_to_exitcode(status)


if __name__ == "__main__":
    sys.exit(main())
