"""Recognises modules that are run only for a hook on an inner layer: the script discards their output."""

from __future__ import annotations

from tensorlens.analysis.lineage import ancestry
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.parameters_without_gradient import PathEnd
from tensorlens.records.model import Backward, Call, Site


def is_discarded(facts: TraceIndex, end: PathEnd, trained: set[int]) -> bool:
    """Returns whether the line that used a parameter discards the result, while parameters before it on the same path
    did get gradients."""
    call = end.cut.call
    if end.kind != "unused" or not (_is_thrown_away(facts, call) or _is_replaced_by_root(facts, call, end.backward)):
        return False
    inputs = [access.tensor for access in call.inputs]
    before = (access.tensor for n in inputs for _, maker in ancestry(facts, n, call.index) for access in maker.inputs)
    return any(number in trained for number in before)


def _is_thrown_away(facts: TraceIndex, call: Call) -> bool:
    """Returns whether the statement of a call, or of the functions that return its value, discards it."""
    if any(backward.site == call.site for backward in facts.backwards):
        return False  # the line runs a whole training step
    site: Site | None = facts.trace.sites[call.site]
    seen: set[int] = set()
    while site is not None and site.id not in seen:
        seen.add(site.id)
        thrown_away = facts.names.syntax.is_thrown_away(site.span)
        if thrown_away is not None:
            return thrown_away
        site = None if site.caller is None else facts.trace.sites[site.caller]
    return False


def _is_replaced_by_root(facts: TraceIndex, call: Call, backward: Backward) -> bool:
    """Returns whether library code made the value, and the line that called it stores a root that was made later."""
    site = facts.trace.sites[call.site]
    if len(site.targets) != 1 or facts.names.syntax.is_direct(site, call.op):
        return False
    roots = ((root.tensor, facts.creator(root.tensor)) for root in backward.roots)
    return any(
        made is not None
        and made.site == call.site
        and made.index > call.index
        and facts.name(number, backward.index) == site.targets[0]
        for number, made in roots
    )
