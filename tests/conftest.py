"""What several test modules share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from warm import Warm


@pytest.fixture(scope="session")
def warm() -> Iterator[Warm]:
    """A process that has imported torch: each run of a script is a fork of it."""
    with Warm() as process:
        yield process
