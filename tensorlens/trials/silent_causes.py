"""Confirms causes of wrong or missing gradients, where nothing raises: the gradients of a further run decide."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.diagnostics.numerics.gradient_differs_from_reference import find_unreported
from tensorlens.records import reference
from tensorlens.records.report import Diagnostic
from tensorlens.runner.compared_runs import FinishedRun
from tensorlens.trials.interventions import Trial, places, silent_pass
from tensorlens.trials.outcomes import FirstRun, Outcome, undecided, unmade

Again = Callable[[Trial], FinishedRun]
"""Makes the further run of a trial."""


def differing_gradients(
    first: FirstRun, copies: FinishedRun | None, found: Diagnostic, trial: Trial, again: Again
) -> Diagnostic:
    """Compares the gradients of the pass that differs with those of the run that kept copies of everything."""
    backward = silent_pass(first.facts)
    at = -1 if backward is None else _position(first.run, backward.index)
    if at < 0 or copies is None or len(copies.reader.passes) <= at:
        return found
    run, words = again(trial), trial.words(first.facts.trace)
    undone = _undone(first, trial, run)
    if undone:
        return replace(found, confirmation=undone)
    ours, passes, right = first.run.reader.passes, run.reader.passes, copies.reader.passes
    pairs = zip(ours[: at + 1], passes, strict=False)
    if len(passes) <= at or not all(reference.start_alike(one, other) for one, other in pairs):
        return replace(found, confirmation=undecided(words, Outcome("different")))
    if reference.have_same_gradients(passes[at], right[at]):
        text = f"{words}, the gradients are those of the run that copies everything"
        return replace(found, confirmed=True, confirmation=text)
    if not reference.have_same_gradients(passes[at], ours[at]):
        text = f"{words}, the gradients change, but are not those of the run that copies everything"
        return replace(found, confirmation=text)
    return _without_cause(first.facts, found, trial)


def missing_gradients(
    first: FirstRun, _: FinishedRun | None, found: Diagnostic, trial: Trial, again: Again
) -> Diagnostic:
    """Looks for gradients that a run has only because it records at a cut."""
    run = again(trial)
    undone = _undone(first, trial, run)
    if undone:
        return replace(found, confirmation=undone)
    made = trial.only(frozenset(fact.number for fact in run.trace().inspection.intervened))
    words = made.words(first.facts.trace)
    for one, other in zip(first.run.reader.passes, run.reader.passes, strict=False):
        if not reference.start_alike(one, other):
            return replace(found, confirmation=undecided(words, Outcome("different")))
        more = reference.gradient_count(other) - reference.gradient_count(one)
        if more > 0:
            have = "tensors have" if more > 1 else "tensor has"
            return replace(found, confirmed=True, confirmation=f"{words}, {more} more {have} a gradient")
    return replace(found, confirmation=f"not decided: {words}, no further tensor has a gradient")


def _undone(first: FirstRun, trial: Trial, run: FinishedRun) -> str:
    """Says why a run decides nothing: it was stopped, or had nothing to change; "" if it may decide."""
    if run.was_stopped:
        return undecided(trial.words(first.facts.trace), Outcome("stopped"))
    return "" if run.trace().inspection.intervened else unmade(first.facts.trace, trial)


def _without_cause(facts: TraceIndex, found: Diagnostic, trial: Trial) -> Diagnostic:
    suspected, words = places(facts.trace, trial.spans), trial.words(facts.trace)
    why = f"the cause that was suspected, {suspected}, is not it: {words}, the gradients are as before"
    plain = next(find_unreported(facts), found)
    return replace(plain, fixes=(), confirmed=False, confirmation=why)


def _position(run: FinishedRun, index: int) -> int:
    return next((n for n, each in enumerate(run.reader.passes) if each.index == index), -1)
