"""Collects the traces of the ranks of a distributed run in one folder, and finds the rank that ends last.

No rank waits for the end of another one: each saves its trace, and the last of them to end finds all traces there. A
rank holds a lock while it is alive, so that one which was killed is not waited for.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from tensorlens.errors import UsageError
from tensorlens.records.model import Rank, Trace
from tensorlens.runner.processes import ranks_below, started_at, status_of
from tensorlens.runner.ranks import FOLDER

PREFIX = "tensorlens-ranks-"
_LATE = 5.0  # seconds that a rank gets to start after another one has ended
_LATEST = 60.0  # the same for one whose process runs: its python starts
_LATE_ELSEWHERE = 30.0  # the same if other machines share the folder: their processes are not seen
_UNUSED = 60.0  # seconds after which a folder without a living rank is one that nobody will report
_PAUSE = 0.05


class RankFolder:
    """The folder of one run, as one of its ranks uses it. The rank counts as alive until it leaves the `with` block, or
    its process ends."""

    def __init__(self, folder: Path, rank: Rank, expected: int, launcher: int = 0) -> None:
        self._folder, self._rank, self._expected, self._launcher = folder, rank, expected, launcher
        self._alive: IO[bytes] | None = None

    def __enter__(self) -> RankFolder:
        """Removes the trace that this rank left in an earlier run.

        Raises:
            UsageError: the folder can't be used.
        """
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not _is_own(self._folder):
                raise UsageError(f"can't collect the ranks in {self._folder}: it is not a folder of this user")
            self._trace(self._rank.number).unlink(missing_ok=True)
            self._alive = self._lock_file(self._rank.number).open("ab")
            self._lock(self._alive)
        except OSError as error:
            raise UsageError(f"can't collect the ranks in {self._folder}: {error.strerror}") from None
        return self

    def __exit__(self, *_: object) -> None:
        if self._alive is not None:
            self._alive.close()

    def _lock(self, file: IO[bytes]) -> None:
        """Locks a file, which another rank may have locked for a moment to see whether this one is alive."""
        end = time.monotonic() + _LATE
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except BlockingIOError:
                if time.monotonic() > end:
                    file.close()
                    number = self._rank.number
                    raise UsageError(f"another process is rank {number} in {self._folder} already") from None
            time.sleep(_PAUSE)

    def save(self, trace: Trace) -> tuple[Path, ...]:
        """Saves the trace of this rank. Returns the traces of all ranks if no other one is running, else nothing."""
        from tensorlens.records.trace_file import save

        self._wait_for_starts()
        with self._one_at_a_time():
            new = self._folder / f"rank{self._rank.number}.new"
            save(trace, new)
            new.replace(self._trace(self._rank.number))
            return self._all_traces()

    def leave(self) -> tuple[Path, ...]:
        """Leaves without a trace: this rank was stopped before its script ran. Returns what `save` returns."""
        with self._one_at_a_time():
            return self._all_traces()

    def _all_traces(self) -> tuple[Path, ...]:
        if any(self._is_running(number) for number in self._others()):
            return ()
        return tuple(sorted(self._folder.glob("rank*.json"), key=_number))

    @property
    def is_alone(self) -> bool:
        """Returns whether no other rank has started here."""
        return len(list(self._folder.glob("rank*.alive"))) == 1

    @property
    def expects_all(self) -> bool:
        """Returns whether all ranks of the run are to be collected here: the folder is shared, or there is one node."""
        return self._expected >= self._rank.world

    def remove(self) -> None:
        """Removes a folder whose traces have been reported, unless the user named it."""
        if FOLDER in os.environ:
            return
        for path in self._folder.iterdir():
            path.unlink(missing_ok=True)
        with suppress(OSError):
            self._folder.rmdir()
        remove_left()

    def _others(self) -> Iterator[int]:
        """Yields the other ranks that are expected here, or that have started here."""
        if self._expected >= self._rank.world:
            started = range(self._rank.world)
        else:
            started = sorted(_number(path) for path in self._folder.glob("rank*.alive"))  # type: ignore[assignment]
        yield from (number for number in started if number != self._rank.number)

    def _wait_for_starts(self) -> None:
        begins = time.monotonic()
        end = begins + (_LATE_ELSEWHERE if FOLDER in os.environ else _LATE)
        while len(started := set(self._folder.glob("rank*.alive"))) < self._expected:
            now = time.monotonic()
            if now > end and (now > begins + _LATEST or not self._is_starting({_number(path) for path in started})):
                return
            time.sleep(_PAUSE)

    def _is_starting(self, started: set[int]) -> bool:
        """Returns whether the launcher has a child that is this command for another rank."""
        return any(number not in started for number in ranks_below(self._launcher))

    def _is_running(self, number: int) -> bool:
        """Returns whether a rank has started, has no trace yet, and its process is alive."""
        if self._trace(number).exists():
            return False
        try:
            with self._lock_file(number).open("rb") as file:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except FileNotFoundError:
            return False
        except OSError:
            return True
        return False

    @contextmanager
    def _one_at_a_time(self) -> Iterator[None]:
        with (self._folder / "merge.lock").open("ab") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def _trace(self, number: int) -> Path:
        return self._folder / f"rank{number}.json"

    def _lock_file(self, number: int) -> Path:
        return self._folder / f"rank{number}.alive"


def folder_of(rank: Rank, environment: Mapping[str, str]) -> RankFolder:
    """Returns the folder of a run: the one that `TENSORLENS_RANKS` names, for several nodes, or else one for the ranks
    of this machine, which the launcher and its process determine."""
    restart = environment.get("TORCHELASTIC_RESTART_COUNT", "0")
    if named := environment.get(FOLDER):
        folder = Path(named)
        return RankFolder(folder if restart == "0" else folder / f"restart{restart}", rank, rank.world)
    launcher, launched = _launcher()
    names = ("MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RUN_ID")
    key = [*(environment.get(name, "") for name in names), restart, rank.world, os.getuid(), launcher, launched]
    number = hashlib.sha256(repr(key).encode()).hexdigest()[:16]
    here = environment.get("LOCAL_WORLD_SIZE", "")
    expected = int(here) if here.isdecimal() else rank.world
    return RankFolder(Path(tempfile.gettempdir()) / f"{PREFIX}{number}", rank, expected, launcher)


def remove_left() -> None:
    """Removes the folders of earlier runs whose last rank was killed."""
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with suppress(OSError):
            if _is_own(folder) and time.time() - folder.stat().st_mtime > _UNUSED and not _has_living(folder):
                shutil.rmtree(folder, ignore_errors=True)


def _has_living(folder: Path) -> bool:
    for path in folder.glob("rank*.alive"):
        with path.open("rb") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
    return False


def _launcher() -> tuple[int, str]:
    """Returns the process that started the ranks, and when that started: the nearest one above that is no rank."""
    process = os.getppid()
    with suppress(OSError, ValueError, IndexError):
        while process > 1 and b"\0RANK=" in b"\0" + Path(f"/proc/{process}/environ").read_bytes():
            process = int(status_of(process)[1])
    return process, started_at(process)


def _is_own(folder: Path) -> bool:
    status = folder.lstat()
    if FOLDER in os.environ:
        return folder.is_dir()
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid() and not status.st_mode & 0o022


def _number(path: Path) -> int:
    digits = path.stem.removeprefix("rank")
    return int(digits) if digits.isdecimal() else -1
