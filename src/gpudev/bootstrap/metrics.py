"""Metrics over HTTP, on a port of their own: those of every process that shares the folder."""

from __future__ import annotations

from pathlib import Path

import structlog
from prometheus_client import REGISTRY, CollectorRegistry, multiprocess, start_http_server

from gpudev.settings.service import ApiSettings

_log = structlog.get_logger(__name__)


def serve_metrics(settings: ApiSettings, folder: Path | None) -> None:
    """Of all processes that share `folder`, whichever of them is asked; without one, of this process."""
    if not settings.metrics_port:
        return
    try:
        start_http_server(settings.metrics_port, settings.host, _make_registry(folder))
    except OSError as error:
        # Somebody else has the port. That is a pity for who watches, and no reason not to serve.
        _log.warning("metrics_unavailable", port=settings.metrics_port, error=str(error))


def forget_process(pid: int, folder: Path) -> None:
    """Take what described a process that has ended, such as its gauges, out of the shared figures.

    Its counts stay: they happened.
    """
    multiprocess.mark_process_dead(pid, str(folder))  # type: ignore[no-untyped-call]  # it has no types


def _make_registry(folder: Path | None) -> CollectorRegistry:
    if folder is None:
        return REGISTRY
    registry = CollectorRegistry()
    multiprocess.MultiProcessCollector(registry, str(folder))  # type: ignore[no-untyped-call]  # it has no types
    return registry
