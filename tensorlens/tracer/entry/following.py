"""Traces a process that the program started, into a journal of its own.

One object serves a process, and after a fork the copy of it serves the child. The first process of a run has a recorder
already, and only notes its children here.
"""

from __future__ import annotations

import atexit
import functools
import json
import os
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, replace
from multiprocessing.connection import Connection
from types import FrameType, TracebackType
from typing import Any

import torch

from tensorlens.journal.process_folder import SITE, VARIABLE, Following, ProcessFolder, ProcessRecord
from tensorlens.journal.rows import VersionsRow
from tensorlens.paths import PACKAGE
from tensorlens.records.version import __version__
from tensorlens.tracer.entry.child_start import watch_runs
from tensorlens.tracer.entry.new_recorder import new_recorder
from tensorlens.tracer.entry.preparation import Preparation
from tensorlens.tracer.entry.started_program import own_program
from tensorlens.tracer.entry.written_outcome import FORKED, leave, stop_in_copy, write_outcome
from tensorlens.tracer.isolation.guard import Function
from tensorlens.tracer.isolation.hidden_frames import strip
from tensorlens.tracer.isolation.patch import patched
from tensorlens.tracer.patches.table import installed, with_ranks
from tensorlens.tracer.patches.warnings_and_tracebacks import warnings_and_tracebacks_cleaned
from tensorlens.tracer.recording.journal_writer import JournalWriter
from tensorlens.tracer.recording.recorder import Recorder

_MOST_WAITING, _PAUSE = 5.0, 0.02  # seconds


class FollowedProcess:
    """Knows how this process is traced, and what its children need so that they are."""

    def __init__(self, following: Following, program: Mapping[str, Any] | None = None) -> None:
        self._following = following
        self._folder = ProcessFolder(following.folder)
        self._program = dict(program or {})  # script, argv, folder, own_files; empty: those of the first process
        self._recorder: Recorder | None = None
        self._sink: JournalWriter | None = None  # None: this process is the first one, or it is not traced
        self._descriptor = -1
        self._name = ""
        self._record: ProcessRecord | None = None
        self._stack = ExitStack()
        self._is_over = False
        self._failed_at = 0.0
        self.is_rank = "RANK" in os.environ

        self.everything = following.everything

    has_some = True

    @property
    def process(self) -> FollowedProcess:
        return self

    def adopt(self, recorder: Recorder) -> None:
        """Serves the first process of the run, which `recorder` traces."""
        self._recorder = recorder

    def announce(self) -> None:
        """Makes all processes that this one starts from now on followed ones, however it starts them."""
        os.environ.update(self.environment(None))

    # --- a traced child ---------------------------------------------------------------------------------------------

    def begin(self, frame: FrameType | None = None, joins: bool = False) -> None:
        """Begins to trace this process. `frame` forked it, or `joins` the process group of a distributed run."""
        following = self._following
        self._name, self._descriptor = self._folder.new_journal()
        recorder = new_recorder(tuple(self._program.get("own_files", ())), following.steps, following.training)
        self._sink = JournalWriter(recorder.rows, self._descriptor, reader=following.reader)
        recorder.rows.write(VersionsRow, __version__, str(torch.__version__), sys.version.split()[0])
        self._recorder, recorder.children, recorder.is_rank = recorder, self, joins
        recorder.leaving = self._leave
        recorder.write_out = self._sink.flush_if_due
        user = recorder.sites.user_frame(frame)
        place = {} if user is None else {"file": user.f_code.co_filename, "line": user.f_lineno}
        self._write_record(place)
        self._stack.enter_context(warnings_and_tracebacks_cleaned(recorder))
        self._stack.enter_context(installed(recorder))
        recorder.__enter__()
        watch_runs(self.ended)
        self._write_before_sending()
        atexit.register(self._close)

    def _write_record(self, place: Mapping[str, Any]) -> None:
        program = {name: self._program.get(name, "") for name in ("script", "folder")}
        argv = tuple(self._program.get("argv", ()))
        restart = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
        number, world = os.environ.get("RANK", ""), os.environ.get("WORLD_SIZE", "")
        is_rank = self.is_rank and number.isdecimal() and world.isdecimal()
        self._record = ProcessRecord(
            os.getpid(),
            os.getppid(),
            time.time(),
            argv=argv,
            rank=int(number) if is_rank else -1,
            world=int(world) if is_rank else 0,
            restart=int(restart) if restart.isdecimal() else 0,
            error_file=os.environ.get("TORCHELASTIC_ERROR_FILE", "") if is_rank else "",
            **program,
            **place,
        )
        self._folder.write_record(self._name, self._record)

    def _write_before_sending(self) -> None:
        """Writes out what is recorded before this process sends a result: the one that gets it may end this one."""
        send = Connection.send_bytes

        @functools.wraps(send)
        def send_bytes(connection: Any, *args: Any, **kwargs: Any) -> None:
            if self._sink is not None:
                with suppress(Exception):
                    self._sink.flush()
            send(connection, *args, **kwargs)

        Connection.send_bytes = send_bytes  # type: ignore[method-assign,assignment]
        self._stack.callback(setattr, Connection, "send_bytes", send)

    def ended(self, error: BaseException | None) -> None:
        """Writes how the program of this process ended."""
        recorder, sink = self._recorder, self._sink
        if recorder is None or sink is None or self._is_over:
            return
        self._is_over = True
        names = vars(sys.modules.get("__main__", sys))
        ended_at = (self._failed_at or time.time()) if self.is_rank else None
        with suppress(Exception):  # the command infers the outcome
            with recorder.quiet():
                _end_replicas(recorder)
                write_outcome(recorder, names, error, ended_at)
            sink.flush()

    def _leave(self, status: int) -> None:
        if self._recorder is not None and self._sink is not None and not self._is_over:
            self._is_over = True
            leave(self._recorder, self._sink, status)

    def _close(self) -> None:
        if self._sink is not None:
            self.ended(getattr(sys, "last_exc", None) or getattr(sys, "last_value", None))
            with suppress(Exception):  # the process is at its end
                self._stack.close()
            self._sink.close()
            with suppress(Exception):
                self._wait_until_told()

    def _wait_until_told(self) -> None:
        """Waits a moment for the command if this rank failed: the launcher reads the cause when the process ends."""
        failed = getattr(sys, "last_exc", None) or getattr(sys, "last_value", None)
        if failed is None or self._record is None or not self._record.error_file:
            return
        latest, told = time.monotonic() + _MOST_WAITING, self._folder.told(self._name)
        while not told.exists() and time.monotonic() < latest and self._folder.path.exists():
            time.sleep(_PAUSE)

    def show_own_frames_only(self) -> None:
        """Leaves this package's frames out of the traceback that Python shows when the program fails."""
        show = sys.excepthook

        def excepthook(kind: type[BaseException], value: BaseException, traceback: TracebackType | None) -> None:
            self._failed_at = time.time()
            with suppress(Exception):
                strip(value)
            sys.last_traceback = value.__traceback__
            show(kind, value, value.__traceback__)

        sys.excepthook = excepthook

    # --- forks ------------------------------------------------------------------------------------------------------

    def before_fork(self) -> None:
        if self._sink is not None:
            self._sink.pause()

    def after_fork_in_parent(self) -> None:
        if self._sink is not None:
            self._sink.resume()
            if self._recorder is not None and not self.everything:
                self._recorder.gap(FORKED, sys._getframe(1))

    def after_fork_in_child(self) -> None:
        """Ends what belongs to the parent, and begins a journal of this process if it is to be traced."""
        recorder, sink = self._recorder, self._sink
        if recorder is not None and sink is not None:
            stop_in_copy(recorder, sink)
            with suppress(OSError):
                os.close(self._descriptor)
        on_stack = recorder if recorder is not None and recorder.is_on_top() else None
        self._recorder, self._sink, self._record, self._stack = None, None, None, ExitStack()
        self._is_over = self.is_rank = False
        with _unnoticed():
            watch_runs()
            if self.everything:
                if on_stack is not None:
                    on_stack.__exit__()
                self.begin(sys._getframe(1))

    # --- children of this process -----------------------------------------------------------------------------------

    def follows(self, environment: Mapping[str, str] | None) -> bool:
        """Returns whether a process that is started with this environment is traced."""
        if self.everything:
            return True
        given = os.environ if environment is None else environment
        is_rank = "WORLD_SIZE" in given and ("RANK" in given or "LOCAL_RANK" in given)
        return is_rank and not (self.is_rank or "RANK" in os.environ)

    def environment(self, given: Mapping[str, str] | None) -> dict[str, str]:
        """Returns the environment of a process that is to be traced."""
        self._folder.make()
        known = {
            os.fsdecode(name): os.fsdecode(value) for name, value in (os.environ if given is None else given).items()
        }
        site = str(self._folder.path / SITE)
        paths = [path for path in known.get("PYTHONPATH", "").split(os.pathsep) if path not in ("", site)]
        settings = {
            "python": sys.implementation.cache_tag,
            "package": str(PACKAGE.resolve().parent),
            "following": asdict(self._following),
        }
        return {**known, VARIABLE: json.dumps(settings), "PYTHONPATH": os.pathsep.join([site, *paths])}

    def preparation(self) -> object:
        """Returns an object that makes the process that unpickles it a followed one."""
        settings = json.dumps({**self._program, "following": asdict(self._following)})
        return Preparation(settings)

    def note_start(self, pid: int | None, what: str, frame: FrameType | None, runs_python: bool = True) -> None:
        """Notes a process that was started. Without `runs_python`, its own children may run Python."""
        user = None if self._recorder is None else self._recorder.sites.user_frame(frame)
        file, line = ("", 0) if user is None else (user.f_code.co_filename, user.f_lineno)
        self._folder.note("started", pid=pid, parent=os.getpid(), what=what, file=file, line=line, python=runs_python)

    def note_exit(self, pid: int, code: int) -> None:
        if self._folder.path.exists():
            self._folder.note("exited", pid=pid, code=code)

    # --- ranks ------------------------------------------------------------------------------------------------------

    def joined_by(
        self, join: Function, frame: FrameType, args: tuple[object, ...], kwargs: dict[str, object]
    ) -> object:
        """Calls the function that makes the default process group. Traces this process from now on, as a rank."""
        with _unnoticed():
            if self._recorder is None:
                self.begin(frame, joins=True)
            self._see_group()
        result = join(*args, **kwargs)
        with _unnoticed():
            self._note_rank()
        return result

    def _see_group(self) -> None:
        """Records what a rank does, in a process that was traced before it joined a group."""
        recorder = self._recorder
        if recorder is not None and not recorder.is_rank:
            self._stack.enter_context(patched(with_ranks(recorder, ()), recorder))
            self._stack.callback(_end_replicas, recorder)

    def _note_rank(self) -> None:
        import torch.distributed as dist

        if self._recorder is None or not dist.is_initialized():
            return
        number, world = dist.get_rank(), dist.get_world_size()
        self.is_rank = True
        if self._record is None:  # the first process: the command gives its trace the rank
            self._folder.note("rank", rank=number, world=world)
        elif self._record.rank < 0:
            self._record = replace(self._record, rank=number, world=world)
            self._folder.write_record(self._name, self._record)


@contextmanager
def _unnoticed() -> Iterator[None]:
    """Keeps an error of this package from the program, which goes on without a trace."""
    try:
        yield
    except Exception:
        if os.environ.get("TENSORLENS_DEBUG"):
            raise


def _end_replicas(recorder: Recorder) -> None:
    if recorder.replicas is not None:
        recorder.replicas.end()
        recorder.replicas = None


def begin_here(following: Following, program: Mapping[str, Any], joins: bool = False) -> FollowedProcess:
    """Begins to trace this process, which was started anew."""
    process = FollowedProcess(following, program or own_program())
    os.register_at_fork(
        before=process.before_fork,
        after_in_child=process.after_fork_in_child,
        after_in_parent=process.after_fork_in_parent,
    )
    process.begin(joins=joins)
    if not program:
        process.show_own_frames_only()
    return process
