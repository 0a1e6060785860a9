"""Fixtures that several test modules use."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from support.warm import Warm

# The tests run side by side on all cores: there, threads of torch's own wait for each other, in all that is run here.
os.environ.setdefault("OMP_NUM_THREADS", "1")


@pytest.fixture(scope="session")
def warm() -> Iterator[Warm]:
    """Starts a process that has imported torch: each run of a script is a fork of it."""
    with Warm() as process:
        yield process
