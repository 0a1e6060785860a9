"""Finds values that losses use, and that are computed without a graph at a line that made them with one before."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from tensorlens.analysis.code_around import function_around, statement_around, upwards
from tensorlens.analysis.lineage import ancestry
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.loss_calls import recorded_above
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.records.model import Backward, Call

_MIN_MISSED = 3
_SWITCHES = ("no_grad", "inference_mode", "set_grad_enabled", "detach")


@dataclass(frozen=True, slots=True)
class CachedConstant:
    """A parameter that passes of a line reached, and that later ones do not reach, or that none reaches: they use a
    value that was computed from it while gradients were off."""

    parameter: int
    made: Call  # used the parameter while gradients were off
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
        if own is None or not row.is_stepped or not row.requires_grad or own.filled == own.rounds:
            continue
        if not own.filled:
            yield from _never_reached(facts, row.tensor)
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


def _never_reached(facts: TraceIndex, parameter: int) -> Iterator[CachedConstant]:
    """Yields the value that a line kept for later while gradients were off, if all passes of a line use this one."""
    done = [each for each in facts.backwards if not each.failed]
    passes = [each for each in done if each.site == done[-1].site]
    if len(passes) < _MIN_MISSED:
        return
    found = [_found(facts, parameter, each, had_graph=False) for each in (passes[0], passes[-1])]
    first, last = found
    if first is None or last is None or first[0].index != last[0].index:
        return
    made, used, value = last
    kept = _kept_lazily(facts, value, used.index) if made.index < passes[0].index else None
    if kept is not None:
        yield CachedConstant(parameter, made, used, kept, passes[-1], 0, len(passes))


def _kept_lazily(facts: TraceIndex, value: int, before: int) -> int | None:
    """Returns the site that keeps a value in an attribute or item below a condition, as one that fills a cache, if the
    code that computes it switches gradients off nowhere: it is the caller that does, for its own purpose."""
    off = [call for _, call in ancestry(facts, value, before) if call.mode != "grad"]
    for site in facts.call_chain(off[0].site) if off else ():
        where = facts.trace.sites[site]
        function = function_around(facts, where.span.file, where.span.line)
        if function is None or any(word in facts.code_of(function, where.span.file) for word in _SWITCHES):
            return None
        if any(word in ast.unparse(each) for each in function.decorator_list for word in _SWITCHES):
            return None
        if any("." in target or "[" in target for target in where.targets):
            statement = statement_around(facts, where.span)
            around = [] if statement is None else list(upwards(facts, where.span.file, statement))
            inside = around[: around.index(function)] if function in around else []
            return site if any(isinstance(each, ast.If) for each in inside) else None
    return None


def _fills(backward: Backward, parameter: int) -> bool:
    return any(change.tensor == parameter and change.after is not None for change in backward.gradients)


def _kept(facts: TraceIndex, value: int, before: int) -> int | None:
    """Returns the innermost site around the call that made a value whose statement assigns to a name."""
    made = next(iter(facts.producers(value, before)), None)
    sites = [] if made is None else facts.call_chain(made.site)
    return next((site for site in sites if facts.trace.sites[site].targets), None)


def _found(
    facts: TraceIndex, parameter: int, backward: Backward, had_graph: bool = True
) -> tuple[Call, Call, int] | None:
    """Returns the call that used a parameter while gradients were off, and the one of a loss that uses the result, with
    the tensor that it uses."""
    for call in recorded_above(facts, backward):
        for access in call.inputs:
            if access.tensor == parameter or facts.requires_grad(access.tensor, call.index - 1):
                continue
            for _, made in ancestry(facts, access.tensor, call.index):
                is_off = made.mode != "grad" and any(each.tensor == parameter for each in made.inputs)
                if is_off and not made.within and (not had_graph or _had_graph(facts, made, parameter)):
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
