"""Reads the journals of the processes that a program starts, while they run, and makes a trace of each."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tensorlens.journal.process_folder import Following, ProcessFolder, ProcessRecord
from tensorlens.records.step_choice import StepChoice
from tensorlens.runner.processes import is_running, started_at

if TYPE_CHECKING:  # imported after the child has been started
    from tensorlens.journal.reader import Reader
    from tensorlens.records.model import Event, Script, Trace
    from tensorlens.runner.journal_file import JournalStream

PREFIX = "tensorlens-processes-"
_GRACE = 2.0  # seconds that traced processes get to end after the first one has ended
_PAUSE = 0.02
NOT_TRACED = "what runs in it is not traced"  # the end of a gap of the tracer
ONLY_RANKS = "it is traced if it is one of the ranks"


@dataclass(frozen=True, slots=True)
class Followed:
    """A process that the program started."""

    record: ProcessRecord
    trace: Trace | None  # None: it imported no torch, or it could not be traced
    what: str = ""  # "worker 0 of a DataLoader"; "": a fork
    file: str = ""  # the line that started it
    line: int = 0
    is_known: bool = True  # False: whether it imported torch is not known


@dataclass(slots=True)
class _Journal:
    """One journal that is being read."""

    record: ProcessRecord
    reader: Reader
    stream: JournalStream
    started: str  # of its process, as the system counts
    stopped: bool = False  # at the time limit
    told: bool = False  # the launcher knows how it ended
    ended: float = 0.0


@dataclass(slots=True)
class FollowedProcesses:
    """The processes of one run, other than the first. `everything`: all of them, not only ranks."""

    everything: bool = False
    steps: StepChoice | None = None
    training: bool = False
    path: str = field(default_factory=lambda: str(_new_path()))
    on_rank: Callable[[ProcessRecord], None] = lambda record: None  # called once for each rank
    on_end: Callable[[str, Trace], None] = lambda path, trace: None  # once for each rank with such a file: its end
    _journals: dict[str, _Journal] = field(default_factory=dict)
    _is_used: bool = False

    @property
    def following(self) -> Following:
        """Returns what the first process of the run has to know."""
        return Following(self.path, os.getpid(), self.everything, self.steps, self.training)

    @property
    def has_some(self) -> bool:
        """Returns whether a process is being traced."""
        return bool(self._journals)

    @property
    def has_ranks(self) -> bool:
        return any(each.record.rank >= 0 for each in self._journals.values())

    @property
    def is_used(self) -> bool:
        """Returns whether a process has made the folder."""
        self._is_used = self._is_used or os.path.exists(self.path)
        return self._is_used

    def read(self, script: Script) -> None:
        """Reads what the processes have written so far. Their programs have the name of `script` unless they say."""
        if not self.is_used:
            return
        folder = ProcessFolder(self.path)
        for name in folder.names():
            with suppress(OSError, ValueError, TypeError, KeyError):
                record = folder.record(name)
                known = self._journals.get(name)
                if known is None:
                    self._journals[name] = _opened(folder, name, record, script)
                else:
                    known.record, known_rank = record, known.record.rank
                if record.rank >= 0 and (known is None or known_rank < 0):
                    self.on_rank(record)
        for name, each in self._journals.items():
            _read(each)
            if each.record.error_file and each.reader.finished and not each.told:
                each.told = True
                with suppress(Exception):  # the report at the end shows what is wrong
                    self.on_end(each.record.error_file, _trace_of(each, None))
                folder.told(name).touch()
            if not each.ended and not is_running(each.record.pid, each.started):
                _read(each)
                each.ended = time.time()

    def stop(self) -> None:
        """Stops the processes that run when the time limit is over."""
        running = [each for each in list(self._journals.values()) if not each.ended]
        for each in running:
            each.stopped = True
        _signal(running, signal.SIGTERM)

    def finish(self, script: Script) -> None:
        """Waits a moment for the processes that are about to end, and reads the rest. Those that the time limit stops
        are killed."""
        if not self.is_used:
            return
        latest = time.monotonic() + _GRACE
        self.read(script)
        while any(not each.ended for each in self._journals.values()) and time.monotonic() < latest:
            time.sleep(_PAUSE)
            self.read(script)
        _signal([each for each in list(self._journals.values()) if each.stopped and not each.ended], signal.SIGKILL)
        self.read(script)

    def found(self) -> list[Followed]:
        """Returns the processes in the order in which they began."""
        folder = ProcessFolder(self.path)
        starts = list(folder.notes("started"))
        exits = {each["pid"]: each["code"] for each in folder.notes("exited")}
        pythons = {each["pid"] for each in folder.notes("python")}
        found = []
        for each in sorted(self._journals.values(), key=lambda journal: journal.record.began):
            start = _start_of(each.record, starts)
            place = (start["file"], start["line"]) if start else (each.record.file, each.record.line)
            trace = _trace_of(each, exits.get(each.record.pid))
            program = f"`{' '.join(('python', each.record.script, *each.record.argv))}`" if each.record.script else ""
            found.append(Followed(each.record, trace, start["what"] if start else program, *place))
        known = {each.record.pid for each in self._journals.values()}
        if self.everything:
            for start in starts:
                if start["pid"] not in known and start["python"]:
                    record = ProcessRecord(start["pid"], start["parent"], start["time"], "", (), "")
                    is_known = start["pid"] in pythons
                    found.append(Followed(record, None, start["what"], start["file"], start["line"], is_known))
        return found

    def rank_of_first(self) -> tuple[int, int] | None:
        """Returns the rank of the first process, if it joined a process group, and how many there are."""
        for each in ProcessFolder(self.path).notes("rank"):
            return each["rank"], each["world"]
        return None

    def remove(self) -> None:
        """Removes the folder, and those of earlier runs whose command was killed."""
        for each in self._journals.values():
            each.stream.close()
        if self.is_used:
            shutil.rmtree(self.path, ignore_errors=True)
            for path in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
                if _is_left(path):
                    shutil.rmtree(path, ignore_errors=True)


def _new_path() -> Path:
    """Returns the path of a folder that does not exist. It names this process, so that a later run knows whether the
    folder is still in use."""
    process = os.getpid()
    name = f"{PREFIX}{process}-{started_at(process)}-{os.urandom(4).hex()}"
    return Path(tempfile.gettempdir(), name)


def _is_left(path: Path) -> bool:
    """Returns whether a folder belongs to a command that has ended."""
    process, _, rest = path.name.removeprefix(PREFIX).partition("-")
    with suppress(OSError):
        return (
            process.isdecimal()
            and path.stat().st_uid == os.getuid()
            and not is_running(int(process), rest.partition("-")[0])
        )
    return False


def _opened(folder: ProcessFolder, name: str, record: ProcessRecord, script: Script) -> _Journal:
    from tensorlens.journal.reader import Reader
    from tensorlens.runner.journal_file import JournalStream

    own = replace(script, path=record.script, argv=record.argv, folder=record.folder) if record.script else script
    reader = Reader(replace(own, outcome="killed", exit_code=None, failure=None))
    return _Journal(record, reader, JournalStream(str(folder.journal(name))), started_at(record.pid))


def _read(journal: _Journal) -> None:
    from tensorlens.journal.batches import unpack

    journal.reader.read(unpack(journal.stream))
    journal.stream.release()


def _start_of(record: ProcessRecord, starts: list[dict[str, Any]]) -> dict[str, Any] | None:
    """Returns the note about the start of a process, or about that of the shell that started it."""
    own = (each for each in reversed(starts) if each["pid"] == record.pid)
    shells = (each for each in reversed(starts) if each["pid"] == record.parent and not each["python"])
    return next(own, None) or next(shells, None)


def _trace_of(journal: _Journal, code: int | None) -> Trace:
    from tensorlens.journal.rows import LOST
    from tensorlens.records.model import Rank
    from tensorlens.runner.follow import trace_of
    from tensorlens.runner.ranks import host

    reader, record = journal.reader, journal.record
    if not reader.finished and journal.ended and code is not None and code >= 0 and not journal.stopped:
        reader.break_off(LOST)
    script = reader.script
    if record.rank >= 0 and record.world > 1:
        script = replace(script, rank=Rank(record.rank, record.world, host(), journal.ended))
    if journal.stopped:
        return trace_of(reader, replace(script, outcome="timeout", exit_code=code))
    if not reader.finished:
        outcome: Any = "killed" if code is None or code < 0 else "exit"
        return trace_of(reader, replace(script, outcome=outcome, exit_code=code))
    if code is not None and script.outcome == "ok" and code != 0:
        outcome = "killed" if code < 0 else "exit"
        return trace_of(reader, replace(script, outcome=outcome, exit_code=code))
    return trace_of(reader, script)


def _signal(journals: list[_Journal], number: signal.Signals) -> None:
    for each in journals:
        if is_running(each.record.pid, each.started):
            with suppress(OSError):
                os.kill(each.record.pid, number)


def generations(ranks: Sequence[Trace], began: Sequence[float]) -> list[list[Trace]]:
    """Returns the ranks in groups that ran together: a launcher may restart them, and a program may start some twice.

    The ranks are in the order in which they began.
    """
    groups: list[list[Trace]] = []
    for trace, start in zip(ranks, began, strict=True):
        rank = trace.script.rank
        assert rank is not None
        known = [each.script.rank for each in groups[-1] if each.script.rank is not None] if groups else []
        is_new = any(each.number == rank.number or each.world != rank.world for each in known)
        if not known or is_new or all(0 < each.ended < start for each in known):
            groups.append([])
        groups[-1].append(trace)
    return groups


def is_rank(trace: Trace) -> bool:
    return trace.script.rank is not None


def with_true_gaps(trace: Trace) -> Trace:
    """Returns the trace of a rank that started others: its gaps say that the others are traced."""
    from tensorlens.records.model import Gap

    def true(event: Event) -> Event:
        if not (isinstance(event, Gap) and event.reason.endswith(NOT_TRACED)):
            return event
        return replace(event, reason=event.reason.removesuffix(NOT_TRACED) + ONLY_RANKS)

    return replace(trace, events=tuple(map(true, trace.events)))
