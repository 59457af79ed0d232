"""What every test may use."""

from __future__ import annotations

import pytest

pytest_plugins = ["tests.support.postgres"]


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """The product runs on asyncio, and so do its tests."""
    return "asyncio"
