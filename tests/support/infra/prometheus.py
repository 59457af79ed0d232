"""A real Prometheus, from Debian's package, that watches what a test shows it."""

from __future__ import annotations

import http.server
import json
import shutil
import socket
import subprocess
import threading
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from typing_extensions import override

from tests.support.infra.packages import find_program
from tests.support.machine import wait_for

_DEADLINE_SECONDS = 60


@dataclass(frozen=True, slots=True)
class Prometheus:
    url: str

    def query(self, expression: str) -> list[dict[str, Any]]:
        """What it evaluates to now; an expression that it refuses is an error."""
        asked = f"{self.url}/api/v1/query?{urllib.parse.urlencode({'query': expression})}"
        with urllib.request.urlopen(asked, timeout=_DEADLINE_SECONDS) as answer:  # noqa: S310 - http
            result: list[dict[str, Any]] = json.load(answer)["data"]["result"]
        return result


@contextmanager
def running_prometheus(
    folder: Path, targets: Mapping[str, tuple[str, Mapping[str, str]]]
) -> Iterator[Prometheus]:
    """It reads from each `host:port`, every second, with these labels; the key is the job."""
    config = folder / "prometheus.yml"
    jobs = [
        {"job_name": job, "static_configs": [{"targets": [target], "labels": dict(labels)}]}
        for job, (target, labels) in targets.items()
    ]
    config.write_text(yaml.safe_dump({"global": {"scrape_interval": "1s"}, "scrape_configs": jobs}))
    with socket.create_server(("127.0.0.1", 0)) as probe:
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    process = subprocess.Popen(
        [
            find_program("prometheus", "prometheus"),
            *(f"--config.file={config}", f"--storage.tsdb.path={folder / 'data'}"),
            *(f"--web.listen-address={address}", "--log.level=error"),
            *(f"--web.console.templates={folder}", f"--web.console.libraries={folder}"),
        ]
    )
    try:
        wait_for(lambda: _is_ready(address), "Prometheus to be ready")
        yield Prometheus(f"http://{address}")
    finally:
        process.terminate()
        process.wait(_DEADLINE_SECONDS)
        shutil.rmtree(folder / "data")


@contextmanager
def exposed(text: str) -> Iterator[str]:
    """An exporter that always tells the same; its `host:port`."""

    class Exporter(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.end_headers()
            self.wfile.write(text.encode())

        @override
        def log_message(self, *_: object) -> None:
            """Quiet."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Exporter) as server:
        serving = threading.Thread(target=server.serve_forever)
        serving.start()
        try:
            yield f"127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            serving.join()


def _is_ready(address: str) -> bool:
    try:
        with urllib.request.urlopen(f"http://{address}/-/ready", timeout=_DEADLINE_SECONDS) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False
