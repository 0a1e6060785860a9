"""Runs a script in a child process that traces it, and returns the trace. Imports no torch."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tensorlens.journal.child_config import ChildConfig, ReferenceRun
from tensorlens.journal.rows import FULL, LOST
from tensorlens.paths import is_folder
from tensorlens.runner.child_signals import signals_sent_to
from tensorlens.runner.journal_file import JournalFile, journal_file
from tensorlens.runner.python_process import python_child
from tensorlens.runner.stdin_replay import repeatable_stdin
from tensorlens.runner.targets import Target as Target
from tensorlens.runner.targets import check_target

if TYPE_CHECKING:  # imported after the child has been started
    from tensorlens.journal.reader import Reader
    from tensorlens.records.model import Script, Trace
    from tensorlens.runner.follow import JournalFollower

# While torch is imported, Ctrl-C ends the process at once, without a traceback of this package.
_START_SCRIPT = """\
import signal
handler = signal.getsignal(signal.SIGINT)
if handler is signal.default_int_handler:
    signal.signal(signal.SIGINT, signal.SIG_DFL)
from tensorlens.tracer.entry.script import main
main(handler, first, path)
"""
_GRACE = 2.0  # seconds that a script gets to exit after a timeout before it is killed


@dataclass(frozen=True, slots=True)
class RunOptions:
    """The options of a run. With `output`, a descriptor for standard output, the script gets no input and its standard
    error is dropped."""

    timeout: float | None = None  # seconds
    claims: bool = False  # check the `#:` lines
    stdout_to_stderr: bool = False  # standard output is reserved for the report
    show_progress: bool = False  # draw a progress line on standard error, which must be a terminal
    output: int | None = None
    reference: bool = False  # run the script a second time, with copies of saved tensors, and compare the gradients


def run_script(
    target: Target,
    options: RunOptions = RunOptions(),
    on_start: Callable[[], None] = lambda: None,
    on_trace: Callable[[Trace], None] | None = None,
) -> Trace:
    """Runs a script to its end in a child process and returns its trace, however the script ended.

    `on_start` is called once, when the child has been started; it may take as long as the child imports torch.
    `on_trace` is called at most once, from another thread, while the child exits. It gets the trace that this function
    returns later, unless the script then records more or exits in another way than it has reported.

    Raises:
        UsageError: there is no such file or module, or it is not Python source.
    """
    check_target(target)
    if options.reference:
        return _run_with_reference(target, options, on_start)
    reader, exited, follower = _run_child(target, _Child(options), on_start, on_trace)
    return follower.trace(_exited_script(reader, exited))


def _run_with_reference(target: Target, options: RunOptions, on_start: Callable[[], None]) -> Trace:
    """Returns the trace for `--reference`, including the comparison with the second run."""
    from tensorlens.records.reference import Reference, attach
    from tensorlens.runner.follow import trace_of

    first_child, second_child = _comparable_children(options)
    with repeatable_stdin(target.kind == "stdin") as rewind:
        first, exited, _ = _run_child(target, first_child, on_start)
        if exited.timed_out or exited.interrupted:
            first.reference = Reference(reason="the first run was stopped")
        else:
            try:
                second, _, _ = _run_child(target, replace(second_child, stdin=rewind()))
                attach(first, second)
            except Exception as error:  # an internal error: the report of the first run is still good
                first.reference = Reference(reason=f"the check itself failed ({type(error).__name__}: {error})")
    return trace_of(first, _exited_script(first, exited))


@dataclass(frozen=True, slots=True)
class _Child:
    """The settings of one run. `reference` is set for the two runs of `--reference`."""

    options: RunOptions
    reference: ReferenceRun | None = None
    environment: dict[str, str] | None = None
    stdin: int | None = None


def _comparable_children(options: RunOptions) -> tuple[_Child, _Child]:
    """Returns the two runs of `--reference`, which start from the same random state."""
    sets_hash_seed = "PYTHONHASHSEED" not in os.environ
    seed = int.from_bytes(os.urandom(4), "little")
    environment = {**os.environ, "PYTHONHASHSEED": str(seed)} if sets_hash_seed else None
    first, second = (ReferenceRun(seed, sets_hash_seed, copies) for copies in (False, True))
    return _Child(options, first, environment), _Child(options, second, environment)


@dataclass(frozen=True, slots=True)
class _Exited:
    returncode: int
    timed_out: bool
    interrupted: bool


def _run_child(
    target: Target,
    child: _Child,
    on_start: Callable[[], None] = lambda: None,
    on_trace: Callable[[Trace], None] | None = None,
) -> tuple[Reader, _Exited, JournalFollower]:
    """Runs the target once. The imports inside take time, so they come after the start of the child."""
    with journal_file() as journal:
        process = _start(target, child, journal)
        with signals_sent_to(process) as signals:
            on_start()
            from tensorlens.journal.overflow import Overflow
            from tensorlens.journal.reader import Reader
            from tensorlens.runner.follow import JournalFollower
            from tensorlens.runner.progress_line import ProgressLine

            reader = Reader(_script_record(target))
            progress = ProgressLine(sys.stderr.fileno()) if child.options.show_progress else None
            signals.before_stop = None if progress is None else progress.remove
            overflow = Overflow(journal.pipe[0])
            with JournalFollower(reader, journal.stream, progress, overflow, on_trace) as follower:
                timed_out = _wait(process, child.options.timeout)
    if not reader.finished and process.returncode >= 0 and not timed_out:
        reader.break_off(FULL if overflow.is_used else LOST)
    return reader, _Exited(process.returncode, timed_out, bool(signals.interrupts)), follower


def _script_record(target: Target) -> Script:
    from tensorlens.records.model import Script
    from tensorlens.runner.ranks import rank_in

    folder = os.path.abspath(target.name) if target.kind == "file" else os.getcwd()
    if target.kind == "file" and not is_folder(Path(folder)):
        folder = os.path.dirname(folder)
    path = {"file": target.name, "module": f"-m {target.name}", "stdin": "-"}[target.kind]
    return Script(path, target.argv, folder, "killed", None, None, rank_in(os.environ))


def _start(target: Target, child: _Child, journal: JournalFile) -> subprocess.Popen[Any]:
    options, reference = child.options, child.reference
    config = ChildConfig(
        target.kind, target.name, target.argv, options.claims, options.show_progress, journal.pipe, reference
    )
    sys.stdout.flush()
    streams: dict[str, Any]
    if options.output is not None:
        streams = {"stdin": subprocess.DEVNULL, "stdout": options.output, "stderr": subprocess.DEVNULL}
    elif reference is not None and reference.copy_saved_tensors:  # the second run's output would repeat the first one's
        streams = {"stdin": child.stdin, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    else:
        stdout = sys.stderr.fileno() if options.stdout_to_stderr else None
        streams = {"stdin": child.stdin, "stdout": stdout, "stderr": None}
    return python_child(
        _START_SCRIPT,
        str(journal.descriptor),
        config.to_json(),
        pass_fds=(journal.descriptor, *journal.pipe),
        env=child.environment,
        **streams,
    )


def _wait(process: subprocess.Popen[Any], timeout: float | None) -> bool:
    """Waits for the script to exit and stops it after `timeout` seconds. Returns whether it had to be stopped."""
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


def _exited_script(reader: Reader, exited: _Exited) -> Script:
    """Returns the script's record, completed from the exit status with what the child could not report."""
    script = reader.script
    if exited.timed_out:
        return replace(script, outcome="timeout", exit_code=exited.returncode)
    if script.outcome == "interrupted" or (not reader.finished and exited.returncode == -signal.SIGINT):
        return replace(script, outcome="interrupted", exit_code=128 + signal.SIGINT)
    if not reader.finished or (exited.returncode < 0 and script.outcome in ("ok", "killed")):
        outcome: Any = "killed" if exited.returncode < 0 else "exit"
        return replace(script, outcome=outcome, exit_code=exited.returncode)
    return replace(script, exit_code=exited.returncode)
