"""Fixtures that several test modules use."""

from __future__ import annotations

import os
import signal
import textwrap
from pathlib import Path

import pytest
from support.warm import Warm, end_shared, shared
from support.warm_runs import Runs, WarmRuns

# The tests run side by side on all cores: there, threads of torch's own wait for each other, in all that is run here.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # commands start hundreds of times: without bytecode, for twice as long
for name in ("CI", "BUILD_NUMBER"):  # where they are set, pytest does not cut the lines of its summary
    os.environ.pop(name, None)
# A run that a shell has put in the background ignores these signals, and so would the commands that tests interrupt.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGQUIT, signal.SIG_DFL)


@pytest.fixture(scope="session")
def warm() -> Warm:
    """Starts a process that has imported torch: each run of a script is a fork of it."""
    return shared()


def pytest_sessionfinish() -> None:
    end_shared()


@pytest.fixture
def runs(warm: Warm, tmp_path: Path) -> Runs:
    """Makes the runs of a program given as text."""

    def of(text: str) -> WarmRuns:
        script = tmp_path / "program.py"
        script.write_text(textwrap.dedent(text).lstrip("\n"))
        return WarmRuns(warm, script)

    return of
