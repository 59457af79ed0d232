"""What `gpu-dev up` says when it cannot start: a sentence and what to do, never a traceback."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


def test_kubernetes_without_a_kubeconfig_is_told_before_anything_starts(tmp_path: Path) -> None:
    state = tmp_path / "state"
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GPU_DEV_")}
    environment |= {"HOME": str(tmp_path), "KUBECONFIG": str(tmp_path / "nosuch")}
    words = ["up", "--cluster", "kubernetes", "--state-dir", str(state)]
    seen = subprocess.run(
        [sys.executable, "-m", "gpudev.cli.main", *words],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env=environment,
    )
    assert seen.returncode == 1
    assert "Error: The kubeconfig cannot be used:" in seen.stderr
    assert "Hint: Set KUBECONFIG" in seen.stderr
    assert 'File "' not in seen.stderr + seen.stdout
    assert not list(state.glob("logs/*"))
