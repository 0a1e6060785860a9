"""Runs scripts in the recorder's process, which knows nothing of the lens."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import torch

_RECORDER = Path(__file__).with_name("recorder.py")


@dataclass(frozen=True)
class Run:
    """A plain run of a script: its exit status, what it printed, and the gradients that it used."""

    status: int
    printed: str
    error: str
    record: dict[str, Any]

    @property
    def last_line(self) -> str:
        """Returns the last line of the traceback: the exception."""
        return next(iter(reversed(self.error.strip().splitlines())), "")


class Recorder:
    """Starts the process that runs scripts; leaving the context ends it."""

    def __enter__(self) -> Recorder:
        command = [sys.executable, str(_RECORDER)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(60)  # on a busy machine, it may still be importing torch
        self._process.stdout.close()

    def run(self, script: Path, results: tuple[str, ...] = (), copies: bool = False) -> Run:
        """Runs a script plainly; with `copies`, autograd keeps copies of what it saves."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder) / "record.pt"
            request = {"script": str(script), "out": str(out), "results": results, "copies": copies}
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
            answer = json.loads(self._process.stdout.readline())
            empty: dict[str, Any] = {"steps": [], "passes": [], "returned": {}, "left": [], "trained": []}
            record = torch.load(out) if out.exists() else empty
        return Run(answer["status"], answer["printed"], answer["error"], record)
