"""A client of version 0.3 as far as jobs go: it sends exactly those bodies and reads exactly those fields.

It sends neither `Idempotency-Key` nor `X-GPU-Dev-Client`, makes the id itself, and bears 404 for a moment.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.support.api_server import Answer

IMAGE = "pytorch/pytorch:2.1.0-cuda12.1-cudnn8-runtime"

ALWAYS = {
    "job_id": str,
    "reservation_id": str,
    "user_id": str,
    "status": str,
    "gpu_type": str,
    "gpu_count": int,
    "duration_hours": (int, float),
    "created_at": str,
    "name": str,
    "jupyter_enabled": bool,
    "secondary_users": list,
    "oom_count": int,
}
"""What it reads without asking whether it is there, and as what."""

Call = Callable[..., Answer]
"""Method, path and body to an answer, with the user's key."""


@dataclass(frozen=True, slots=True)
class Wish:
    gpu_type: str = "t4"
    gpu_count: int = 1
    hours: int = 1
    name: str | None = None
    github_user: str = "ada"
    env: dict[str, str] = field(default_factory=dict)
    """Switches such as `JUPYTER_ENABLED`, which it sends only when they are on."""


@dataclass(frozen=True, slots=True)
class Client03:
    call: Call

    def submit(self, wish: Wish, reservation_id: str | None = None, **more: Any) -> Answer:
        return self.call("POST", "/v1/jobs/submit", {**make_body(wish, reservation_id), **more})

    def poll(self, reservation_id: str) -> dict[str, Any] | None:
        """What it sees of a reservation; None while it is not found."""
        answer = self.call("GET", f"/v1/jobs/{reservation_id}")
        if answer.status == 404:
            assert "not found" in answer.json["detail"]
            return None
        assert answer.status == 200, answer.text
        return read_job(answer.json)

    def list(self, status: str = "pending,queued,preparing,active") -> list[dict[str, Any]]:
        answer = self.call("GET", f"/v1/jobs?status={status}&limit=50&offset=0")
        assert answer.status == 200, answer.text
        page = answer.json
        assert page["total"] >= len(page["jobs"])
        return [read_job(job) for job in page["jobs"]]

    def cancel(self, reservation_id: str) -> dict[str, Any]:
        answer = self.call("POST", f"/v1/jobs/{reservation_id}/cancel")
        assert answer.status == 200, answer.text
        done: dict[str, Any] = answer.json
        assert (done["action"], done["status"]) == ("cancel", "requested")
        assert done["message"]
        return done


def make_body(wish: Wish, reservation_id: str | None = None) -> dict[str, Any]:
    variables = {
        "GPU_TYPE": wish.gpu_type,
        "GPU_COUNT": str(wish.gpu_count),
        "RESERVATION_ID": reservation_id or str(uuid.uuid4()),
        "USER_ID": "somebody-else",
        "GITHUB_USER": wish.github_user,
        **({"POD_NAME": wish.name} if wish.name is not None else {}),
        **wish.env,
    }
    return {
        "image": IMAGE,
        "instance_type": "p5.48xlarge",
        "duration_hours": wish.hours,
        "env_vars": variables,
    }


def read_job(job: dict[str, Any]) -> dict[str, Any]:
    """It would fall over a field that is missing, null or of another type."""
    for name, kind in ALWAYS.items():
        assert isinstance(job[name], kind), name
    assert None not in job.values(), job
    if job["status"] == "active":
        assert job["ssh_command"] == f"ssh -p {job['node_port']} dev@{job['node_ip']}"
        assert job["expires_at"].endswith("Z")
        assert job["launched_at"].endswith("Z")
        assert job["pod_name"]
    if job["status"] == "failed":
        assert job["failure_reason"]
    return job
