"""Runs a script in a child process that traces it, and returns the trace. Imports no torch."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING

from tensorlens.runner.child_run import ChildRun, exited_script, run_child
from tensorlens.runner.child_run import RunOptions as RunOptions
from tensorlens.runner.compared_runs import ComparedRuns, FinishedRun, FurtherRuns, compared_runs
from tensorlens.runner.self_check import unseen_in_this_torch
from tensorlens.runner.targets import Target as Target
from tensorlens.runner.targets import check_target

if TYPE_CHECKING:  # imported after the child has been started
    from tensorlens.records.model import Trace

_DEFAULT = RunOptions()


def run_script(
    target: Target,
    options: RunOptions = _DEFAULT,
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
    if options.reference or options.training:
        with compared_runs(target, options, samples=options.reference) as runs:
            if options.reference:
                return run_with_reference(runs, on_start)
            first = runs.first(on_start)
            return first.complete or first.trace()
    child = ChildRun(options, unseen=unseen_in_this_torch())
    reader, exited, follower = run_child(target, child, on_start, on_trace)
    return follower.trace(exited_script(reader, exited))


def run_with_reference(runs: ComparedRuns, on_start: Callable[[], None] = lambda: None) -> Trace:
    """Makes the runs of `--reference`. Returns the trace of the first run, with the comparison."""
    first = runs.first(on_start)
    if not first.was_stopped:
        compare_with_copies(runs, first)
        trace = first.trace()
        try:
            return exact_lines(runs, trace)
        except KeyboardInterrupt:
            return trace
    from tensorlens.records.reference import Reference

    first.reader.reference = Reference(reason="the first run was stopped")
    return first.trace()


def compare_with_copies(runs: ComparedRuns, first: FinishedRun) -> FinishedRun | None:
    """Makes the run that keeps copies of what autograd saves. The reader of the first run gets the comparison."""
    from tensorlens.records.reference import Reference, attach

    try:
        second = runs.again(copy_saved_tensors=True)
        attach(first.reader, second.reader)
        return second
    except Exception as error:  # an internal error: the report of the first run is still good
        first.reader.reference = Reference(reason=f"the check itself failed ({type(error).__name__}: {error})")
        return None


def exact_lines(runs: FurtherRuns, trace: Trace) -> Trace:
    """Finds the exact lines of the writes outside torch, in a further run if there are any."""
    from tensorlens.runner.exact_writes import with_exact_lines

    try:
        return with_exact_lines(runs, trace)
    except Exception:  # an internal error: the trace of the first run is still good
        if os.environ.get("TENSORLENS_DEBUG"):
            raise
        return trace
