"""A small SSH server for tests of `gpu-dev connect`: one host key, one user, commands through `sh`.

Run as a program: `python -m tests.support.ssh_server HOST_KEY AUTHORIZED_KEYS`. It prints its port.
"""

from __future__ import annotations

import asyncio
import sys

import asyncssh


async def run_command(process: asyncssh.SSHServerProcess[str]) -> None:
    child = await asyncio.create_subprocess_exec("sh", "-c", process.command or "exit 9", stdout=-1)
    output, _ = await child.communicate()
    process.stdout.write(output.decode())
    process.exit(child.returncode or 0)


async def serve(host_key: str, authorized_keys: str) -> None:
    server = await asyncssh.listen(
        "127.0.0.1",
        0,
        server_host_keys=[host_key],
        authorized_client_keys=authorized_keys,
        process_factory=run_command,
    )
    print(server.get_port(), flush=True)  # noqa: T201 - how the test learns it
    await server.wait_closed()


if __name__ == "__main__":
    asyncio.run(serve(*sys.argv[1:]))
