"""A process that looks after an embedded PostgreSQL until it is killed: `postgres_parent.py FOLDER`.

It writes the server's process id, as a line, once the server accepts connections.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from gpudev.adapters.local.database.embedded_postgres import EmbeddedPostgres


async def main() -> None:
    async with EmbeddedPostgres(Path(sys.argv[1])) as server:
        sys.stdout.write(f"{server.pid}\n")
        sys.stdout.flush()
        await server.wait()


if __name__ == "__main__":
    asyncio.run(main())
