"""Finds values that losses use, and that are computed without a graph at a line that made them with one before."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tensorlens.analysis.lineage import ancestry
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.loss_calls import recorded_above
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.records.model import Backward, Call

_MIN_MISSED = 3


@dataclass(frozen=True, slots=True)
class CachedConstant:
    """A parameter that passes of a line reached, and that later ones do not reach: they use a value that was computed
    from it while gradients were off."""

    parameter: int
    made: Call  # used the parameter while gradients were off, at a line that did so with a graph before
    used: Call  # has the value as a constant
    kept: int | None  # the site whose statement has given the value a name
    backward: Backward  # the last pass
    reached: int  # passes of that line
    missed: int


def cached_constants(training: MeasuredTraining) -> Iterator[CachedConstant]:
    """Yields one for each parameter that an optimizer steps and that still requires grad."""
    facts = training.facts
    for row in training.rows:
        own = row.statistics
        if own is None or not row.is_stepped or not row.requires_grad or not 0 < own.filled < own.rounds:
            continue
        reached = [each for each in facts.backwards if _fills(each, row.tensor)]
        last = next((each for each in reversed(facts.backwards) if not each.failed), None)
        if not reached or last is None or last.site != reached[-1].site or _fills(last, row.tensor):
            continue
        later = [each for each in facts.backwards if each.index > reached[-1].index and each.site == last.site]
        found = _found(facts, row.tensor, last) if len(later) >= _MIN_MISSED else None
        if found is not None:
            made, used, value = found
            kept = _kept(facts, value, used.index)
            yield CachedConstant(row.tensor, made, used, kept, last, len(reached), len(later))


def _fills(backward: Backward, parameter: int) -> bool:
    return any(change.tensor == parameter and change.after is not None for change in backward.gradients)


def _kept(facts: TraceIndex, value: int, before: int) -> int | None:
    """Returns the innermost site around the call that made a value whose statement assigns to a name."""
    made = next(iter(facts.producers(value, before)), None)
    sites = [] if made is None else facts.call_chain(made.site)
    return next((site for site in sites if facts.trace.sites[site].targets), None)


def _found(facts: TraceIndex, parameter: int, backward: Backward) -> tuple[Call, Call, int] | None:
    """Returns the call that used a parameter while gradients were off, and the one of a loss that uses the result, with
    the tensor that it uses."""
    for call in recorded_above(facts, backward):
        for access in call.inputs:
            if access.tensor == parameter or facts.requires_grad(access.tensor, call.index - 1):
                continue
            for _, made in ancestry(facts, access.tensor, call.index):
                is_off = made.mode != "grad" and any(each.tensor == parameter for each in made.inputs)
                if is_off and not made.within and _had_graph(facts, made, parameter):
                    return made, call, access.tensor
    return None


def _had_graph(facts: TraceIndex, made: Call, parameter: int) -> bool:
    """Returns whether the line of a call has used a parameter with a graph before."""
    return any(
        call.site == made.site
        and call.index < made.index
        and call.nodes[1] > call.nodes[0]
        and any(access.tensor == parameter for access in call.inputs)
        for call in facts.calls
    )
