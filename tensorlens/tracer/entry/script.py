"""Runs a script, a module or standard input as `__main__`, traced: the child process of `explain` and `run`.

The interpreter ends the program as usual. An exception leaves `main()` without this package's frames, so the traceback,
the exit status and the order of `atexit` and threads are Python's own.
"""

from __future__ import annotations

import atexit
import gc
import os
import random
import signal
import sys
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import ExitStack, suppress
from types import FrameType, TracebackType

import torch

from tensorlens.journal.child_config import ChildConfig, ComparedRun
from tensorlens.journal.rows import VersionsRow
from tensorlens.records.version import __version__
from tensorlens.tracer.entry.children import Children
from tensorlens.tracer.entry.main_module import Program
from tensorlens.tracer.entry.new_recorder import new_recorder
from tensorlens.tracer.entry.written_outcome import FORKED, leave, stop_in_copy, write_outcome
from tensorlens.tracer.isolation.guard import ErrorGuard
from tensorlens.tracer.isolation.hidden_frames import hide, strip
from tensorlens.tracer.isolation.script_modules import SHADOWED, unload_shadowed_modules
from tensorlens.tracer.patches.table import installed
from tensorlens.tracer.patches.warnings_and_tracebacks import warnings_and_tracebacks_cleaned
from tensorlens.tracer.recording.journal_writer import JournalWriter
from tensorlens.tracer.recording.recorder import Recorder

SignalHandler = Callable[[int, FrameType | None], object] | int | None


def main(
    interrupts: SignalHandler = None, first: Collection[str] | None = None, path: Sequence[str] | None = None
) -> None:
    """Runs `python -c ... FD CONFIG`: FD takes the journal, CONFIG is a `ChildConfig` as JSON.

    Args:
        interrupts: handles Ctrl-C while the program runs.
        first: names of the modules that Python imports before any program; None: unload no module.
        path: the program's `sys.path` without the entry that Python puts before it.
    """
    hide(sys._getframe(1).f_code)
    gc.freeze()  # the last collection would spend most of its time on torch's own objects
    descriptor, config = int(sys.argv[1]), ChildConfig.from_json(sys.argv[2])
    program = Program(config, sys.path[1:] if path is None else path)
    recorder = new_recorder((program.filename,), config.steps, config.training)
    sink = JournalWriter(recorder.rows, descriptor, config.live, config.overflow_pipe)
    recorder.rows.write(VersionsRow, __version__, str(torch.__version__), sys.version.split()[0])
    stack = ExitStack()
    atexit.register(_close, stack, sink)
    recorder.leaving = lambda status: leave(recorder, sink, status)
    recorder.write_out = sink.flush_if_due
    children = None if config.following is None else Children(config.following, recorder, (program.filename,))
    recorder.children = children
    _register_forks(recorder, sink, children)
    error = None
    try:
        if interrupts is not None:
            signal.signal(signal.SIGINT, interrupts)
        code = program.load(recorder)
        stack.enter_context(warnings_and_tracebacks_cleaned(recorder))
        stack.enter_context(installed(recorder))
        if config.compared is not None:
            _prepare_comparison(recorder, config.compared, stack)
        with ErrorGuard(recorder, "what is beside the program"):
            for name, where in () if first is None else unload_shadowed_modules(first):
                recorder.gap(SHADOWED.format(f"`{name}`", where))
        stack.enter_context(recorder)
        exec(code, program.module.__dict__)
    except BaseException as raised:
        error = raised
    with suppress(Exception):  # the program broke what is needed here: the command infers the outcome
        with recorder.quiet():  # threads that go on are recorded: what their passes change now is not read
            if children is not None:
                children.ended(error)
            write_outcome(recorder, program.module.__dict__, error, _time_of_rank(children), program.checker)
        sink.flush()
    if error is not None:
        _let_python_show(error)
        raise error


def _prepare_comparison(recorder: Recorder, run: ComparedRun, stack: ExitStack) -> None:
    """Prepares a run whose gradients are compared. All such runs start from the same random state."""
    from tensorlens.tracer.reference.gradient_samples import Comparison, GradientSamples

    with ErrorGuard(Comparison(recorder.rows), "its beginning"):
        samples = GradientSamples(recorder)
        recorder.samples, recorder.compared = samples if run.samples else None, run
        _seed(run)
        if run.keep_graphs:
            from tensorlens.tracer.reference.kept_graphs import graphs_kept

            stack.enter_context(graphs_kept(recorder))
        if run.in_double:
            from tensorlens.tracer.reference.double_precision import DoublePrecision

            samples.twin_of = stack.enter_context(DoublePrecision(recorder)).twin_of
        if run.copy_saved_tensors:
            from tensorlens.tracer.reference.saved_copies import saved_tensors_copied

            stack.enter_context(saved_tensors_copied(recorder))
        if run.interventions:
            from tensorlens.tracer.reference.interventions import intervening

            stack.enter_context(intervening(recorder, run.interventions))
        if run.terms and recorder.statistics is not None:
            recorder.statistics.measure_terms(run.terms)
        if run.check_functions:
            from tensorlens.tracer.reference.checked_functions import functions_checked

            stack.enter_context(functions_checked(recorder))
        if run.find_nonfinite:
            from tensorlens.tracer.training.nonfinite_search import nonfinite_searched

            stack.enter_context(nonfinite_searched(recorder))


def _seed(run: ComparedRun) -> None:
    if run.remove_hash_seed:
        os.environ.pop("PYTHONHASHSEED", None)
    random.seed(run.seed)
    torch.default_generator.manual_seed(run.seed)
    with suppress(ImportError):
        import numpy

        numpy.random.seed(run.seed)


def _let_python_show(error: BaseException) -> None:
    """Patches `sys.excepthook`: the traceback that it shows starts at the program's first frame."""
    show = getattr(sys, "excepthook", None)

    def excepthook(kind: type[BaseException], value: BaseException, traceback: TracebackType | None) -> None:
        with suppress(Exception):  # then it is shown with this package's frames
            strip(value)
        sys.last_traceback = value.__traceback__
        if show is None:  # as Python does
            del sys.excepthook
            print("sys.excepthook is missing", file=sys.stderr)
            sys.__excepthook__(kind, value, value.__traceback__)
            return
        sys.excepthook = show
        try:
            show(kind, value, value.__traceback__)
        except SystemExit:
            raise
        except BaseException as failed:
            _show_failed_hook(failed, value)

    sys.excepthook = excepthook


def _show_failed_hook(failed: BaseException, value: BaseException) -> None:
    """Prints what Python prints when the program's `sys.excepthook` raises."""
    first = failed.__traceback__
    failed.__traceback__ = None if first is None else first.tb_next
    for title, error in (("Error in sys.excepthook:\n", failed), ("\nOriginal exception was:\n", value)):
        if sys.stderr is not None:
            sys.stderr.write(title)
        sys.__excepthook__(type(error), error, error.__traceback__)


def _register_forks(recorder: Recorder, sink: JournalWriter, children: Children | None) -> None:
    """Stops tracing in a forked child. If it is to be traced, it gets a recorder and a journal of its own."""
    if children is not None:
        os.register_at_fork(before=lambda: children.process.before_fork())  # noqa: PLW0108 - made when it is needed
    os.register_at_fork(
        before=sink.pause,
        after_in_child=lambda: stop_in_copy(recorder, sink),
        after_in_parent=lambda: _note_fork(recorder),
    )
    os.register_at_fork(after_in_parent=sink.resume)
    if children is not None:
        os.register_at_fork(
            after_in_child=lambda: children.process.after_fork_in_child(),  # noqa: PLW0108
            after_in_parent=lambda: children.process.after_fork_in_parent(),  # noqa: PLW0108
        )


def _time_of_rank(children: Children | None) -> float | None:
    """Returns the time if this process is a rank of a distributed run."""
    is_rank = "RANK" in os.environ and "WORLD_SIZE" in os.environ
    return time.time() if is_rank or (children is not None and children.is_rank) else None


def _note_fork(recorder: Recorder) -> None:
    if not recorder.paused and (recorder.children is None or not recorder.children.everything):
        with ErrorGuard(recorder, "a fork"):
            recorder.gap(FORKED, sys._getframe(1))


def _close(stack: ExitStack, sink: JournalWriter) -> None:
    """Undoes the patches. This is the last `atexit` callback: the program's own threads and callbacks have ended."""
    with suppress(Exception):  # the process is at its end
        stack.close()
    sink.close()
