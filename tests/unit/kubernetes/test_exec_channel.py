"""How the end of a program in a container is told."""

from __future__ import annotations

import pytest

from gpudev.adapters.kubernetes.exec_channel import read_exit_code
from gpudev.domain.errors import ClusterUnavailable


def test_success_is_zero() -> None:
    assert read_exit_code({"status": "Success"}) == 0


def test_another_end_has_its_code() -> None:
    causes = [{"reason": "ExitCode", "message": "3"}]
    assert read_exit_code({"status": "Failure", "details": {"causes": causes}}) == 3


def test_a_program_that_did_not_run_is_no_end() -> None:
    with pytest.raises(ClusterUnavailable, match="container not found"):
        read_exit_code({"status": "Failure", "message": "container not found", "reason": "InternalError"})
