"""Keeps what the processes of one run leave for the command: a journal each, who started which, how each ended.

The folder is made by the first process that needs it, so that a run of one process has none. This module imports no
torch: the command's own process uses it, and a child before it imports torch.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from tensorlens.records.step_choice import StepChoice

VARIABLE = "TENSORLENS_PROCESSES"
SITE = "site"  # the folder that begins the PYTHONPATH of a child: its `sitecustomize` is what Python imports first
Log = Literal["started", "exited", "python", "rank"]


@dataclass(frozen=True, slots=True)
class Following:
    """Says which processes of a run are traced, and how: all of them, or only the ranks of a distributed run."""

    folder: str
    reader: int  # the process of the command
    everything: bool = False
    steps: StepChoice | None = None
    training: bool = False

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Following:
        return cls.from_fields(json.loads(text))

    @classmethod
    def from_fields(cls, fields: dict[str, Any]) -> Following:
        steps = fields.pop("steps", None)
        return cls(**fields, steps=None if steps is None else StepChoice(**steps))


@dataclass(frozen=True, slots=True)
class ProcessRecord:
    """Describes a traced process, as it says itself."""

    pid: int
    parent: int
    began: float  # when its recording began, in seconds since 1970
    script: str
    argv: tuple[str, ...]
    folder: str
    file: str = ""  # the line that forked it
    line: int = 0
    rank: int = -1  # in its default process group
    world: int = 0
    restart: int = 0  # of the launcher
    error_file: str = ""  # the file that `torchrun` reads when the process has failed


class ProcessFolder:
    """The folder of one run, as each of its processes uses it."""

    def __init__(self, path: str) -> None:
        self.path = Path(path)

    def make(self) -> None:
        """Makes the folder, if no other process has made it."""
        site = self.path / SITE
        if not site.exists():
            self.path.mkdir(mode=0o700, exist_ok=True)
            site.mkdir(exist_ok=True)
            new = site / f"{os.getpid()}.new"
            new.write_text(_SITECUSTOMIZE.format(variable=VARIABLE), encoding="utf-8")
            new.replace(site / "sitecustomize.py")

    def note(self, log: Log, **fields: object) -> None:
        """Adds a line to one of the lists that all processes write to."""
        self.make()
        line = json.dumps({**fields, "time": time.time()}) + "\n"
        descriptor = os.open(self.path / log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(descriptor, line.encode())
        finally:
            os.close(descriptor)

    def notes(self, log: Log) -> Iterator[dict[str, Any]]:
        with suppress(OSError):
            for line in (self.path / log).read_text(encoding="utf-8").splitlines():
                with suppress(ValueError):
                    yield json.loads(line)

    def new_journal(self) -> tuple[str, int]:
        """Makes the journal of this process. Returns its name, without a suffix, and a descriptor."""
        self.make()
        name = f"{os.getpid()}-{time.monotonic_ns()}"
        return name, os.open(self.journal(name), os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)

    def journal(self, name: str) -> Path:
        return self.path / f"{name}.journal"

    def told(self, name: str) -> Path:
        """Returns the file that the command makes when it has given the launcher the reason why a process failed."""
        return self.path / f"{name}.told"

    def write_record(self, name: str, record: ProcessRecord) -> None:
        new = self.path / f"{name}.new"
        new.write_text(json.dumps(asdict(record)), encoding="utf-8")
        new.replace(self.path / f"{name}.json")

    def names(self) -> list[str]:
        """Returns the names of the journals whose processes have described themselves."""
        return sorted(path.stem for path in self.path.glob("*.json"))

    def record(self, name: str) -> ProcessRecord:
        fields = json.loads((self.path / f"{name}.json").read_text(encoding="utf-8"))
        return ProcessRecord(**{**fields, "argv": tuple(fields["argv"])})


# A child finds its next `sitecustomize` as if this one were not there. Another version of Python, or a Python that
# knows no such folder any more, goes on without a word.
_SITECUSTOMIZE = """\
import json
import os
import sys


def _begin():
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [entry for entry in sys.path if entry != here]
    try:
        settings = json.loads(os.environ.get("{variable}", ""))
        if settings["python"] == sys.implementation.cache_tag:
            sys.path.insert(0, settings["package"])
            try:
                from tensorlens.tracer.entry.child_start import python_started
            finally:
                sys.path.remove(settings["package"])
            python_started(settings["following"], here)
    except Exception:
        if os.environ.get("TENSORLENS_DEBUG"):
            raise
    own = sys.modules.pop("sitecustomize", None)
    try:
        import sitecustomize
    except ImportError as error:
        if error.name != "sitecustomize":
            raise
        if own is not None:
            sys.modules["sitecustomize"] = own


_begin()
"""
