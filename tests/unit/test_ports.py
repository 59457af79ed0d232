"""Which port `gpu-dev up` says that it did not get."""

from __future__ import annotations

import socket

import pytest

from gpudev.bootstrap.control_plane import _find_taken_port

HOST = "127.0.0.1"


def test_the_usual_port_is_told_of_where_another_program_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server((HOST, 0)) as other, socket.create_server((HOST, 0)) as ours:
        usual = other.getsockname()[1]
        monkeypatch.setenv("GPU_DEV_API_PORT", str(usual))
        assert _find_taken_port(None, ours) == usual
        assert _find_taken_port(ours.getsockname()[1], ours) is None
        assert _find_taken_port(None, other) is None
