"""What every test may use."""

from __future__ import annotations

import gc
import os
import signal
import sys
import time

import pytest

# What started the tests must not decide them: a shell in the background ignores Ctrl-C, `nohup` hang-ups, and
# children inherit that; `CI` and `NO_COLOR` change what the programs under test write.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)
for _name in ("CI", "NO_COLOR", "GPU_DEV_API_URL", "GPU_DEV_STATE_DIR", "GPU_DEV_DATABASE_URL"):
    os.environ.pop(_name, None)
# Clients tell their zone, and times in sentences are written in it.
os.environ["TZ"] = "UTC"
time.tzset()
# Tests start hundreds of processes; without bytecode each compiles the product again.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
# Tests and modules live as long as the process, so the collector has nothing to find while they are made.
gc.disable()

pytest_plugins = ["tests.support.postgres", "tests.support.sts", "tests.support.ec2"]


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop() -> None:
    gc.freeze()
    gc.enable()


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """The product runs on asyncio, and so do its tests."""
    return "asyncio"
