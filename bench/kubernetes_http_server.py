"""An API server of Kubernetes as far as its client is measured.

`python -m bench.kubernetes_http_server FOLDER` answers every request over TLS with one pod of the usual
size, and a watch with as many events as its parameter `events` says. It listens on a free port and prints
its number. Its certificates are in the folder.
"""

from __future__ import annotations

import asyncio
import json
import ssl
import sys
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import uvloop

POD_BYTES = 8 * 1024
"""One of our pods with its status and its managed fields."""
_EVENTS_AT_ONCE = 16
_HEAD = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"


def make_pod() -> bytes:
    pod = {"kind": "Pod", "metadata": {"name": "gpu-dev-7f3a91c2", "uid": "u", "resourceVersion": "7"}}
    return json.dumps(pod | {"spec": {"padding": "x" * (POD_BYTES - len(json.dumps(pod)) - 30)}}).encode()


class ApiServer:
    def __init__(self) -> None:
        pod = make_pod()
        self._answer = f"{_HEAD}Content-Length: {len(pod)}\r\n\r\n".encode() + pod
        event = b'{"type":"MODIFIED","object":' + pod + b"}\n"
        self._event = f"{len(event):x}\r\n".encode() + event + b"\r\n"

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                await self._answer_one(reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    async def _answer_one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        lengths = [line for line in head.lower().split("\r\n") if line.startswith("content-length:")]
        if lengths:
            await reader.readexactly(int(lengths[0].partition(":")[2]))
        query = parse_qs(urlsplit(head.split(" ", 2)[1]).query)
        if "watch" not in query:
            writer.write(self._answer)
            return
        writer.write(f"{_HEAD}Transfer-Encoding: chunked\r\n\r\n".encode())
        for _ in range(int(query["events"][0]) // _EVENTS_AT_ONCE):
            writer.write(self._event * _EVENTS_AT_ONCE)
            await writer.drain()
        writer.write(b"0\r\n\r\n")


async def main(folder: Path) -> None:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(folder / "api-server.crt", folder / "api-server.key")
    server = await asyncio.start_server(ApiServer().answer, "127.0.0.1", 0, ssl=context)
    print(server.sockets[0].getsockname()[1], flush=True)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(main(Path(sys.argv[1])))
