"""Makes a second run of a program under `--training`, if the first leaves a question that a further run can answer.

It searches for the operation that makes the first NaN or infinity, measures the terms of losses that have several and
the columns of gradients that are differentiated together, and checks the `backward` of custom Functions.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from tensorlens.records.training_values import FunctionsChecked
from tensorlens.runner import nonfinite_run, term_run
from tensorlens.runner.ranks import rank_in

if TYPE_CHECKING:
    from tensorlens.journal.child_config import Measurement
    from tensorlens.records.model import Trace
    from tensorlens.runner.compared_runs import ComparedRuns, FinishedRun

OTHER_RUN = "a second run from the same random state has other values"
STOPPED = "the second run was stopped"
DISTRIBUTED = "one process of a distributed run can't be repeated alone"
SAMPLED = "the run recorded some of its steps"
COMPILED = "the run has compiled code, inside which no call is seen"
NO_INPUT = "a second run has other values, and its standard input is empty: it can't be read again"
CALLBACKS = "the run has hooks, checkpoints or custom Functions, which would run again for each term"
TermsOf = Callable[["Trace"], tuple["Measurement", ...]]


def complete(runs: ComparedRuns, first: FinishedRun, terms_of: TermsOf | None) -> Trace | None:
    """Adds what a second run finds to the facts of the first. `terms_of` chooses the terms that it measures.

    Returns the trace of the first run if there is nothing to add: to make it and its indexes again takes a while.
    """
    has_odd = bool(first.reader.facts["nonfinite"])
    terms: tuple[Measurement, ...] = ()
    try:
        trace = first.trace()
        terms = () if terms_of is None or first.was_stopped else terms_of(trace)
        if not (has_odd or terms or _has_functions(trace)):
            return trace
        why_not = _why_not(runs, first)
        why_no_terms = why_not or _why_no_terms(trace)
        if has_odd and why_not:
            nonfinite_run.add_reason(first, why_not, searched=False)
        if term_run.has_losses(terms) and why_no_terms:
            term_run.add_reason(first, why_no_terms)
        terms = () if why_no_terms else terms
        has_odd = has_odd and not why_not
        has_functions = not why_not and not has_odd and _has_functions(trace)  # a NaN passes no check
        if has_odd or terms or has_functions:
            _complete(runs, first, has_odd, terms, has_functions)
    except KeyboardInterrupt:
        _give_up(first, has_odd, term_run.has_losses(terms), STOPPED)
    except Exception as error:  # an internal error: the report of the first run is still good
        if os.environ.get("TENSORLENS_DEBUG"):
            raise
        reason = f"the search itself failed ({type(error).__name__}: {error})"
        _give_up(first, has_odd, term_run.has_losses(terms), reason)
    return None


def _why_not(runs: ComparedRuns, first: FinishedRun) -> str:
    """Returns why a run is not repeated; "" if it is."""
    if first.was_stopped:
        return "the run was stopped"
    if runs.has_ranks or rank_in(os.environ) is not None:
        return DISTRIBUTED
    if first.reader.facts["chosen"]:
        return SAMPLED
    if first.reader.facts["compiled"]:
        return COMPILED
    return ""


def _why_no_terms(trace: Trace) -> str:
    """Returns why the terms of a run's losses can't be measured, although it can be repeated; "" if they can."""
    kinds = {each.kind for each in trace.callbacks.registrations}
    return CALLBACKS if any("forward hook" not in kind and "forward pre" not in kind for kind in kinds) else ""


def _has_functions(trace: Trace) -> bool:
    """Returns whether the `backward` of a custom Function of the program has run."""
    callbacks = trace.callbacks
    kinds = {callbacks.registrations[run.registration].kind for run in callbacks.runs}
    return not kinds.isdisjoint(("backward", "vjp"))


def _complete(
    runs: ComparedRuns, first: FinishedRun, has_odd: bool, terms: tuple[Measurement, ...], has_functions: bool
) -> None:
    second = runs.explaining(has_odd, terms, has_functions)
    if second.was_stopped:
        _give_up(first, has_odd, term_run.has_losses(terms), STOPPED)
        return
    other = OTHER_RUN if runs.repeats_input() else NO_INPUT
    if has_odd:
        nonfinite_run.add_origin(first, second, other)
    if terms:
        term_run.add_terms(first, second, other, terms)
    if has_functions and first.reader.facts["measured"]:
        end = first.reader.facts["measured"][-1].index
        first.reader.facts["functions_checked"] = [FunctionsChecked(end)]
        for table in ("formulas", "backward_constants"):
            found = second.reader.facts[table]
            first.reader.facts[table] = [replace(each, index=min(each.index, end)) for each in found]


def _give_up(first: FinishedRun, has_odd: bool, has_terms: bool, reason: str) -> None:
    if has_odd:
        nonfinite_run.add_reason(first, reason, searched=True)
    if has_terms:
        term_run.add_reason(first, reason)
