"""Logs as JSON lines and metrics for Prometheus, set up once a process."""

from __future__ import annotations

import logging
import sys

import structlog
from prometheus_client import Counter, Gauge, Histogram
from structlog.tracebacks import ExceptionDictTransformer

TURNS = Counter("gpu_dev_turns_total", "Controller turns by outcome.", ["controller", "outcome"])
REQUESTS = Histogram(
    "gpu_dev_http_request_seconds",
    "HTTP requests by route, without the time that a stream stays open.",
    ["method", "route", "status"],
)
FORECASTS = Gauge(
    "gpu_dev_forecasts",
    "How good the forecasts of the last four weeks were; errors in minutes.",
    ["gpu_type", "figure"],
    multiprocess_mode="mostrecent",
)
DISK_RECONCILIATION = Gauge(
    "gpu_dev_disk_reconciliation",
    "What the last reconciliation of disks counted.",
    ["statistic"],
    multiprocess_mode="mostrecent",
)
DISK_RECONCILIATION_TIME = Gauge(
    "gpu_dev_disk_reconciliation_timestamp_seconds",
    "When the last reconciliation of disks ended.",
    multiprocess_mode="mostrecent",
)

GPUS = Gauge(
    "gpu_dev_gpus", "GPUs by type, all and free ones.", ["gpu_type", "state"], multiprocess_mode="mostrecent"
)
QUEUED_REQUESTS = Gauge(
    "gpu_dev_queued_requests", "Requests that wait, by type.", ["gpu_type"], multiprocess_mode="mostrecent"
)
QUEUED_GPUS = Gauge(
    "gpu_dev_queued_gpus", "GPUs that are waited for, by type.", ["gpu_type"], multiprocess_mode="mostrecent"
)
RESERVATIONS = Gauge(
    "gpu_dev_reservations", "Live reservations by status.", ["status"], multiprocess_mode="mostrecent"
)
RESERVED_GPUS = Gauge(
    "gpu_dev_reserved_gpus", "GPUs of live reservations.", ["status"], multiprocess_mode="mostrecent"
)
DEAD_LETTERS = Gauge(
    "gpu_dev_dead_letters", "Messages that were given up.", ["queue"], multiprocess_mode="mostrecent"
)
HEARTBEAT_AGE = Gauge(
    "gpu_dev_controller_heartbeat_age_seconds",
    "How long ago a controller last said that it works.",
    ["controller"],
    multiprocess_mode="mostrecent",
)
FAULTS_TOTAL = Counter("gpu_dev_faults_total", "Failures of background work by chore.", ["chore"])
FAILING_ITEMS = Gauge(
    "gpu_dev_failing_items",
    "Items of a chore that have failed three times in a row or more.",
    ["chore"],
    multiprocess_mode="livesum",
)
AUDIT_FINDINGS = Gauge(
    "gpu_dev_audit_findings",
    "What the last verification of the audit log found wrong; 0 is intact.",
    multiprocess_mode="mostrecent",
)
AUDIT_SEALS = Gauge(
    "gpu_dev_audit_seals",
    "Number of the last seal of the audit log; it never falls.",
    multiprocess_mode="mostrecent",
)
AUDIT_VERIFIED_TIME = Gauge(
    "gpu_dev_audit_verified_timestamp_seconds",
    "When the audit log was last verified.",
    multiprocess_mode="mostrecent",
)
TUNNELS = Gauge("gpu_dev_ssh_tunnels", "Open tunnels of the SSH proxy.", multiprocess_mode="livesum")
TUNNEL_REQUESTS = Counter("gpu_dev_ssh_tunnel_requests_total", "Requests for a tunnel by answer.", ["status"])
TUNNEL_ENDS = Counter("gpu_dev_ssh_tunnel_ends_total", "Ends of tunnels by reason.", ["reason"])
TUNNEL_BYTES = Counter("gpu_dev_ssh_tunnel_bytes_total", "Bytes through tunnels.", ["direction"])


def configure_logging(level: str) -> None:
    """JSON on standard error: a constant event, data as keys, never a secret."""
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            # Without local variables: they hold keys, proofs and addresses with passwords.
            structlog.processors.ExceptionRenderer(ExceptionDictTransformer(show_locals=False)),
            structlog.processors.JSONRenderer(),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelNamesMapping()[level.upper()]),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )
