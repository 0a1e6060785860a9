"""Starts the child process that runs and traces a program, and reads back what it recorded. Imports no torch."""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal, TypeVar

from tensorlens.errors import UsageError
from tensorlens.paths import is_folder
from tensorlens.streams import repeatable_stdin

if TYPE_CHECKING:  # imported when the program has been started
    from tensorlens.following import Follower, Load
    from tensorlens.model import Script, Trace
    from tensorlens.reader import Reader

_BOOTSTRAP = """\
import sys
first = frozenset(sys.modules)
import signal
sys.path[0] = {folder!r}
handler = signal.getsignal(signal.SIGINT)
if handler is signal.default_int_handler:
    signal.signal(signal.SIGINT, signal.SIG_DFL)
from tensorlens.tracer.run import main
main(handler, first)
"""  # Ctrl-C while torch is imported ends the process without a traceback of ours
_GRACE = 2.0  # seconds between asking a program that ran out of time to stop and killing it

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Target:
    """The program to run: a file, a module (`-m`), or standard input (`-`), and its arguments."""

    kind: Literal["file", "module", "stdin"]
    name: str
    argv: tuple[str, ...] = ()


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
    return run_and_tell(target, options, lambda: lambda trace: trace)


def run_and_tell(target: Target, options: RunOptions, load: Load[T]) -> T:
    """Run a program as `run_script` does, and return what the function that `load` returns makes of the trace.

    Both are called from another thread while the program runs and winds down (see `following.Follower`).

    Raises:
        UsageError: there is no such file or module, or it is not Python source.
    """
    if target.kind == "file":
        _check_file(Path(target.name))
    elif target.kind == "module":
        _check_module(target.name)
    if not options.reference:
        reader, ended, follower = _recorded(target, _Child(options), load)
        return follower.told(_outcome(reader, ended))
    return load()(_compared_trace(target, options))


def _compared_trace(target: Target, options: RunOptions) -> Trace:
    """The trace of a run with `--reference`: what comparing it with a repetition comes to is part of it."""
    from tensorlens.reference import Reference, attach

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
    comparison: dict[str, Any] = field(default_factory=dict)  # its part of the configuration
    environment: dict[str, str] | None = None
    stdin: int | None = None


def _compared(options: RunOptions) -> Iterator[_Child]:
    """The run and its repetition, with the same random state to start from."""
    ours = "PYTHONHASHSEED" not in os.environ
    seed = int.from_bytes(os.urandom(4), "little")
    environment = {**os.environ, "PYTHONHASHSEED": str(seed)} if ours else None
    for copies in (False, True):
        yield _Child(options, {"seed": seed, "hash_seed": ours, "copies": copies}, environment)


def _nothing() -> Callable[[Trace], None]:
    return lambda trace: None


def _recorded(target: Target, child: _Child, load: Load[T]) -> tuple[Reader, _Ended, Follower[T]]:
    with _journal() as (journal, written):
        process = _start(target, child, journal)
        with _signals_go_to(process) as signals:
            from tensorlens.following import Follower
            from tensorlens.journal import LOST
            from tensorlens.live import LiveLine
            from tensorlens.reader import Reader

            reader = Reader(_script(target))
            live = LiveLine(sys.stderr.fileno()) if child.options.live else None
            signals.before_stop = None if live is None else live.remove
            with Follower(reader, written, load, live) as follower:
                timed_out = _wait(process, child.options.timeout)
    if not reader.finished and process.returncode >= 0 and not timed_out:
        reader.break_off(LOST)
    return reader, _Ended(process.returncode, timed_out, bool(signals.interrupts)), follower


@contextmanager
def _journal() -> Iterator[tuple[int, IO[bytes]]]:
    """A file to be written by its descriptor, and to be read; it is nobody else's, and gone with us whatever happens.
    Nothing is buffered: what the program itself has written into it is written over, and must then be read anew."""
    descriptor, name = tempfile.mkstemp(prefix="tensorlens-")
    with os.fdopen(descriptor, "wb"), open(name, "rb", buffering=0) as written:
        Path(name).unlink()
        yield descriptor, written


def _check_file(path: Path) -> None:
    if is_folder(path):
        raise UsageError(f"{path} is a directory, not a script")
    try:
        with path.open("rb") as file:
            head = file.read(4096)
    except FileNotFoundError:
        raise UsageError(f"no such file: {path}") from None
    except (OSError, ValueError) as error:
        raise UsageError(f"can't read {path}: {getattr(error, 'strerror', None) or error}") from None
    if b"\0" in head:
        raise UsageError(f"{path} is not Python source (it holds null bytes)")


def _check_module(name: str) -> None:
    """The first part of a dotted name is looked for, which runs nothing; the rest is the program's own to import."""
    first = name.partition(".")[0]
    sys.path.insert(0, os.getcwd())
    try:
        found = importlib.util.find_spec(first) is not None
    except ValueError:  # a name that can't be one, or a module in memory that does not say where it is from
        found = first in sys.modules
    finally:
        sys.path.pop(0)
    if not found:
        raise UsageError(f"no module named {first}")


def _script(target: Target) -> Script:
    from tensorlens.model import Script

    folder = os.path.dirname(os.path.abspath(target.name)) if target.kind == "file" else os.getcwd()
    path = {"file": target.name, "module": f"-m {target.name}", "stdin": "-"}[target.kind]
    return Script(path, target.argv, folder, "killed", None, None)


@dataclass(frozen=True, slots=True)
class _Ended:
    returncode: int
    timed_out: bool
    interrupted: bool


def _start(target: Target, how: _Child, descriptor: int) -> subprocess.Popen[bytes]:
    options = how.options
    config: dict[str, Any] = {"kind": target.kind, "name": target.name, "argv": target.argv, "claims": options.claims}
    config |= {"live": options.live, **how.comparison}
    bootstrap = _BOOTSTRAP.format(folder=str(Path(__file__).resolve().parent.parent))
    command = [sys.executable, "-c", bootstrap, str(descriptor), json.dumps(config)]
    sys.stdout.flush()
    unheard = subprocess.DEVNULL if how.comparison.get("copies") else None
    out: Any = sys.stderr.fileno() if options.stdout_to_stderr and unheard is None else unheard
    streams: dict[str, Any] = {"stdin": how.stdin, "stdout": out, "stderr": unheard}
    if options.output is not None:
        streams = {"stdin": subprocess.DEVNULL, "stdout": options.output, "stderr": subprocess.DEVNULL}
    return subprocess.Popen(command, pass_fds=(descriptor,), env=how.environment, **streams)


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
