"""Runs a script once, in a child process that traces it. Imports no torch."""

from __future__ import annotations

import functools
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tensorlens.journal.child_config import ChildConfig, ComparedRun, Measurement
from tensorlens.journal.rows import FULL, LOST
from tensorlens.paths import is_folder
from tensorlens.records.step_choice import StepChoice
from tensorlens.runner.child_signals import signals_sent_to
from tensorlens.runner.journal_file import JournalFile, journal_file
from tensorlens.runner.python_process import python_child
from tensorlens.runner.targets import Target

if TYPE_CHECKING:  # imported after the child has been started
    from tensorlens.journal.reader import Reader
    from tensorlens.records.model import Script, Trace
    from tensorlens.runner.follow import JournalFollower
    from tensorlens.runner.followed_processes import FollowedProcesses

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
    steps: StepChoice | None = None  # the training steps to record; None: all
    training: bool = False  # measure gradients and parameters
    terms_of: Callable[[Trace], tuple[Measurement, ...]] | None = None  # what a second run with `training` measures
    processes: FollowedProcesses | None = None  # of the program that are traced, too, in the first run
    reference: bool = False  # run the script a second time, with copies of saved tensors, and compare the gradients


@dataclass(frozen=True, slots=True)
class ChildRun:
    """The settings of one run. `compared` is set for a run whose gradients are compared with those of another."""

    options: RunOptions
    compared: ComparedRun | None = None
    environment: dict[str, str] | None = None
    stdin: int | None = None
    printed: int | None = None  # a descriptor that takes what the program prints; its standard error is dropped
    unseen: str = ""  # what the lens can't see in any run with this PyTorch: the reason of a gap


@dataclass(frozen=True, slots=True)
class Exited:
    """Says how the process of a run ended."""

    returncode: int
    timed_out: bool
    interrupted: bool
    time: float = 0.0  # in seconds since 1970


def run_child(
    target: Target,
    child: ChildRun,
    on_start: Callable[[], None] = lambda: None,
    on_trace: Callable[[Trace], None] | None = None,
) -> tuple[Reader, Exited, JournalFollower]:
    """Runs the target once. The imports inside take time, so they come after the start of the child."""
    with journal_file() as journal:
        process = _start(target, child, journal)
        with signals_sent_to(process) as signals:
            on_start()
            from tensorlens.journal.overflow import Overflow
            from tensorlens.journal.reader import Reader
            from tensorlens.journal.retention import TRAINING_WINDOW, WINDOW
            from tensorlens.runner.follow import JournalFollower
            from tensorlens.runner.progress_line import ProgressLine
            from tensorlens.runner.unused_memory import return_unused

            window = TRAINING_WINDOW if child.options.training else WINDOW
            reader = Reader(_script_record(target), window)
            reader.return_unused = return_unused
            if child.unseen:
                reader.note_gap(child.unseen)
            progress = ProgressLine(sys.stderr.fileno()) if child.options.show_progress else None
            signals.before_stop = None if progress is None else progress.remove
            overflow = Overflow(journal.pipe[0])
            others = child.options.processes
            beside = None if others is None else functools.partial(others.read, reader.script)
            with JournalFollower(reader, journal.stream, progress, overflow, on_trace, beside) as follower:
                timed_out = _wait(process, child.options.timeout, others)
                ended = time.time()
            if others is not None:
                others.finish(reader.script)
    if not reader.finished and process.returncode >= 0 and not timed_out:
        reader.break_off(FULL if overflow.is_used else LOST)
    return reader, Exited(process.returncode, timed_out, bool(signals.interrupts), ended), follower


def _script_record(target: Target) -> Script:
    from tensorlens.records.model import Script
    from tensorlens.runner.ranks import rank_in

    folder = os.path.abspath(target.name) if target.kind == "file" else os.getcwd()
    if target.kind == "file" and not is_folder(Path(folder)):
        folder = os.path.dirname(folder)
    path = {"file": target.name, "module": f"-m {target.name}", "stdin": "-"}[target.kind]
    return Script(path, target.argv, folder, "killed", None, None, rank_in(os.environ))


def _start(target: Target, child: ChildRun, journal: JournalFile) -> subprocess.Popen[Any]:
    options = child.options
    shown = options.claims, options.show_progress
    config = ChildConfig(
        target.kind,
        target.name,
        target.argv,
        *shown,
        overflow_pipe=journal.pipe,
        compared=child.compared,
        steps=options.steps,
        training=options.training,
        following=None if options.processes is None else options.processes.following,
    )
    sys.stdout.flush()
    streams: dict[str, Any]
    if options.output is not None:
        streams = {"stdin": subprocess.DEVNULL, "stdout": options.output, "stderr": subprocess.DEVNULL}
    elif child.printed is not None:
        streams = {"stdin": child.stdin, "stdout": child.printed, "stderr": subprocess.DEVNULL}
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


def _wait(process: subprocess.Popen[Any], timeout: float | None, others: FollowedProcesses | None) -> bool:
    """Waits for the script to exit and stops it after `timeout` seconds. Returns whether it had to be stopped."""
    try:
        process.wait(timeout)
        return False
    except subprocess.TimeoutExpired:
        if others is not None:
            others.stop()
        process.terminate()
        try:
            process.wait(_GRACE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        return True


def exited_script(reader: Reader, exited: Exited) -> Script:
    """Returns the script's record, completed from the exit status with what the child could not report."""
    script = reader.script
    if script.rank is not None:
        script = replace(script, rank=replace(script.rank, ended=exited.time))
    if exited.timed_out:
        return replace(script, outcome="timeout", exit_code=exited.returncode)
    stopped = exited.returncode == -signal.SIGINT or (exited.interrupted and not reader.versions.torch)
    if script.outcome == "interrupted" or (not reader.finished and stopped):
        return replace(script, outcome="interrupted", exit_code=128 + signal.SIGINT)
    if not reader.finished or (exited.returncode < 0 and script.outcome in ("ok", "killed")):
        outcome: Any = "killed" if exited.returncode < 0 else "exit"
        return replace(script, outcome=outcome, exit_code=exited.returncode)
    return replace(script, exit_code=exited.returncode)
