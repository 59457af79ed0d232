"""What answers for every simulated pod: the first line of an SSH server, and no more.

A program of its own, which the namespaces of the simulated pods run by path: `python banner.py PORT`.
"""

from __future__ import annotations

import asyncio
import sys

BANNER = b"SSH-2.0-gpu-dev-simulated\r\n"


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        writer.write(BANNER)
        await writer.drain()
        await reader.read()
    except ConnectionError:
        pass
    finally:
        writer.close()


async def serve(port: int) -> None:
    server = await asyncio.start_server(answer, "0.0.0.0", port, backlog=4096)  # noqa: S104 - its own network
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1])))
