"""Starts the child process that runs and traces a program, and reads back what it recorded. Imports no torch."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypeVar

from tensorlens.errors import UsageError
from tensorlens.journal.child_config import ChildConfig, ReferenceRun
from tensorlens.journal.overflow import pipe
from tensorlens.journal.rows import FULL, LOST
from tensorlens.paths import is_folder
from tensorlens.runner import python_process
from tensorlens.runner.stdin_replay import repeatable_stdin
from tensorlens.runner.targets import Target as Target
from tensorlens.runner.targets import check_target

if TYPE_CHECKING:  # imported when the program has been started
    from tensorlens.journal.reader import Reader
    from tensorlens.records.model import Script, Trace
    from tensorlens.runner.follow import Follower, Load

_BEGIN = """\
import signal
handler = signal.getsignal(signal.SIGINT)
if handler is signal.default_int_handler:
    signal.signal(signal.SIGINT, signal.SIG_DFL)
from tensorlens.tracer.entry.script import main
main(handler, first, path)
"""  # Ctrl-C while torch is imported ends the process without a traceback of ours
_GRACE = 2.0  # seconds between asking a program that ran out of time to stop and killing it

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class RunOptions:
    timeout: float | None = None  # seconds
    claims: bool = False  # check the `#:` lines
    stdout_to_stderr: bool = False  # keep standard output for the report
    live: bool = False  # show on standard error, a terminal, how far the program has come
    output: int | None = (
        None  # a descriptor that takes standard output; there is then no input, and no errors are shown
    )
    reference: bool = False  # run it once more, with copies of what autograd saves, and compare the gradients


def run_script(target: Target, options: RunOptions = RunOptions()) -> Trace:
    """Run a program to its end in a child process and return what was recorded, whatever became of it.

    Raises:
        UsageError: there is no such file or module, or it is not Python source.
    """
    return run_and_report(target, options, lambda: lambda trace: trace)


def run_and_report(target: Target, options: RunOptions, load: Load[T]) -> T:
    """Run a program as `run_script` does, and return what the function that `load` returns makes of the trace.

    Both are called from another thread while the program runs and winds down (see `following.Follower`).

    Raises:
        UsageError: there is no such file or module, or it is not Python source.
    """
    check_target(target)
    if not options.reference:
        reader, ended, follower = _recorded(target, _Child(options), load)
        return follower.told(_outcome(reader, ended))
    return load()(_compared_trace(target, options))


def _compared_trace(target: Target, options: RunOptions) -> Trace:
    """The trace of a run with `--reference`: what comparing it with a repetition comes to is part of it."""
    from tensorlens.records.reference import Reference, attach

    with repeatable_stdin(target.kind == "stdin") as rewind:
        children = _compared(options)
        first, ended, _ = _recorded(target, next(children), _nothing)
        if ended.timed_out or ended.interrupted:
            first.reference = Reference(reason="the first run was stopped")
        else:
            try:
                second, _, _ = _recorded(target, replace(next(children), stdin=rewind()), _nothing)
                attach(first, second)
            except Exception as error:  # ours; the report of the first run is there all the same
                first.reference = Reference(reason=f"the check itself failed ({type(error).__name__}: {error})")
    return replace(first.trace(), script=_outcome(first, ended))


@dataclass(frozen=True, slots=True)
class _Child:
    """How one run differs from a plain one."""

    options: RunOptions
    reference: ReferenceRun | None = None
    environment: dict[str, str] | None = None
    stdin: int | None = None


def _compared(options: RunOptions) -> Iterator[_Child]:
    """The run and its repetition, with the same random state to start from."""
    ours = "PYTHONHASHSEED" not in os.environ
    seed = int.from_bytes(os.urandom(4), "little")
    environment = {**os.environ, "PYTHONHASHSEED": str(seed)} if ours else None
    for copies in (False, True):
        yield _Child(options, ReferenceRun(seed, remove_hash_seed=ours, copy_saved_tensors=copies), environment)


def _nothing() -> Callable[[Trace], None]:
    return lambda trace: None


def _recorded(target: Target, child: _Child, load: Load[T]) -> tuple[Reader, _Ended, Follower[T]]:
    with _journal() as journal:
        process = _start(target, child, journal)
        with _signals_go_to(process) as signals:
            from tensorlens.journal.overflow import Overflow
            from tensorlens.journal.reader import Reader
            from tensorlens.runner.follow import Follower
            from tensorlens.runner.progress_line import ProgressLine

            reader = Reader(_script(target))
            live = ProgressLine(sys.stderr.fileno()) if child.options.live else None
            signals.before_stop = None if live is None else live.remove
            overflow = Overflow(journal.pipe[0])
            with Follower(reader, journal.written, load, live, overflow) as follower:
                timed_out = _wait(process, child.options.timeout)
    if not reader.finished and process.returncode >= 0 and not timed_out:
        reader.break_off(FULL if overflow.is_used else LOST)
    return reader, _Ended(process.returncode, timed_out, bool(signals.interrupts)), follower


@dataclass(frozen=True, slots=True)
class _Journal:
    """A file that the program's process writes by its descriptor, and a pipe for when the disk is full."""

    descriptor: int
    written: IO[bytes]
    pipe: tuple[int, int]


@contextmanager
def _journal() -> Iterator[_Journal]:
    """The file is nobody else's, and gone with us whatever happens. Nothing is buffered: what the program itself has
    written into it is written over, and must then be read anew."""
    descriptor, path = _new_file()
    with ExitStack() as stack:
        stack.enter_context(os.fdopen(descriptor, "wb"))
        written = stack.enter_context(open(path, "rb", buffering=0))
        if not path.startswith("/proc/"):
            Path(path).unlink()
        ends = pipe()
        for end in ends:
            stack.callback(os.close, end)
        yield _Journal(descriptor, written, ends)


def _new_file() -> tuple[int, str]:
    """A file in the folder for such files, or in memory where that is full."""
    try:
        return tempfile.mkstemp(prefix="tensorlens-")
    except OSError as error:
        if not hasattr(os, "memfd_create"):
            raise UsageError(f"no temporary file can be made: {error.strerror or error}") from None
    descriptor = os.memfd_create("tensorlens")
    return descriptor, f"/proc/self/fd/{descriptor}"


def _script(target: Target) -> Script:
    from tensorlens.records.model import Script
    from tensorlens.runner.ranks import rank_in

    folder = os.path.abspath(target.name) if target.kind == "file" else os.getcwd()
    if target.kind == "file" and not is_folder(Path(folder)):
        folder = os.path.dirname(folder)
    path = {"file": target.name, "module": f"-m {target.name}", "stdin": "-"}[target.kind]
    return Script(path, target.argv, folder, "killed", None, None, rank_in(os.environ))


@dataclass(frozen=True, slots=True)
class _Ended:
    returncode: int
    timed_out: bool
    interrupted: bool


def _start(target: Target, how: _Child, journal: _Journal) -> subprocess.Popen[bytes]:
    options = how.options
    config = ChildConfig(
        target.kind, target.name, target.argv, options.claims, options.live, journal.pipe, how.reference
    )
    command = python_process.command(_BEGIN, str(journal.descriptor), config.to_json())
    sys.stdout.flush()
    unheard = subprocess.DEVNULL if how.reference is not None and how.reference.copy_saved_tensors else None
    out: Any = sys.stderr.fileno() if options.stdout_to_stderr and unheard is None else unheard
    streams: dict[str, Any] = {"stdin": how.stdin, "stdout": out, "stderr": unheard}
    if options.output is not None:
        streams = {"stdin": subprocess.DEVNULL, "stdout": options.output, "stderr": subprocess.DEVNULL}
    return subprocess.Popen(command, pass_fds=(journal.descriptor, *journal.pipe), env=how.environment, **streams)


def _wait(process: subprocess.Popen[bytes], timeout: float | None) -> bool:
    """Wait for the program's end, and put one to it after `timeout` seconds; whether that was needed."""
    try:
        process.wait(timeout)
        return False
    except subprocess.TimeoutExpired:
        process.terminate()
        try:
            process.wait(_GRACE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        return True


@dataclass(slots=True)
class _Signals:
    interrupts: int = 0
    before_stop: Callable[[], None] | None = None  # what is to be done when Ctrl-Z is pressed


@contextmanager
def _signals_go_to(child: subprocess.Popen[bytes]) -> Iterator[_Signals]:
    """Ctrl-C and SIGQUIT reach the child from the terminal by itself; ours is to outlive it and report. SIGTERM is
    passed on. A third Ctrl-C kills a child that does not listen."""
    signals = _Signals()
    if threading.current_thread() is not threading.main_thread():
        yield signals  # they are the main thread's
        return

    def interrupted(number: int, frame: Any) -> None:
        signals.interrupts += 1
        if signals.interrupts >= 3:
            child.kill()

    def stopped(number: int, frame: Any) -> None:
        if signals.before_stop is not None:
            signals.before_stop()
        os.kill(os.getpid(), signal.SIGSTOP)

    handlers: dict[int, Callable[[int, Any], None]] = {
        signal.SIGINT: interrupted,
        signal.SIGQUIT: lambda number, frame: None,
        signal.SIGTERM: lambda number, frame: child.send_signal(signal.SIGTERM),
        signal.SIGTSTP: stopped,
    }
    old = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        yield signals
    finally:
        for number, handler in old.items():
            signal.signal(number, handler)


def _outcome(reader: Reader, ended: _Ended) -> Script:
    """The program as it ended: what its own process could not tell is told by how that process went."""
    script = reader.script
    if ended.timed_out:
        return replace(script, outcome="timeout", exit_code=ended.returncode)
    if script.outcome == "interrupted" or (not reader.finished and ended.returncode == -signal.SIGINT):
        return replace(script, outcome="interrupted", exit_code=130)
    if not reader.finished or (ended.returncode < 0 and script.outcome in ("ok", "killed")):
        outcome: Any = "killed" if ended.returncode < 0 else "exit"
        return replace(script, outcome=outcome, exit_code=ended.returncode)
    return replace(script, exit_code=ended.returncode)
