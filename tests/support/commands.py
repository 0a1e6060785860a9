"""Runs `python -m tensorlens` and returns what it prints: in a fork of a warm process, or in a new Python."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from support.warm import Ran, shared

_OF_TERMINALS = ("FORCE_COLOR", "NO_COLOR", "COLUMNS", "LINES")
SECONDS = 300


def run_command(*words: str | Path, cwd: Path | None = None, text: str = "", **environment: str) -> Ran:
    """Runs the command in a fork that has imported torch and all of TensorLens; `text` is its standard input.

    It takes a tenth of the time of `start_command`. It does not show what an interpreter does at its start and end:
    its imports, its encodings, how a signal ends it.
    """
    return shared().command([str(word) for word in words], cwd, text, _environment(environment))


def start_command(
    *words: str | Path, cwd: Path | None = None, text: str = "", code: str | None = None, **environment: str
) -> Ran:
    """Runs the command, or `code` with its words, in a new Python."""
    start = ["-m", "tensorlens"] if code is None else ["-c", code]
    ended = subprocess.run(
        [sys.executable, *start, *words],
        cwd=cwd,
        input=text,
        capture_output=True,
        encoding="utf-8",
        timeout=SECONDS,
        env=_environment(environment),
        check=False,
    )
    return Ran(ended.returncode, ended.stdout, ended.stderr)


def _environment(given: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name not in _OF_TERMINALS} | given
