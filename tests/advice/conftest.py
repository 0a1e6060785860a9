"""Fixtures of the judge of advice."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from advice.recording import Recorder


@pytest.fixture(scope="session")
def recorder() -> Iterator[Recorder]:
    """Starts a process that records plain runs: it has imported torch, and nothing of the lens."""
    with Recorder() as process:
        yield process
