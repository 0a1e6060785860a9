"""Recognises modules that the script runs only for a hook on an inner layer: it discards their output."""

from __future__ import annotations

from tensorlens.analysis.lineage import ancestry
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.parameters_without_gradient import PathEnd
from tensorlens.records.model import Backward, Call, Site


def is_discarded(facts: TraceIndex, end: PathEnd, trained: set[int]) -> bool:
    """Returns whether a parameter has no gradient only because the script discards what was computed from it.

    Parameters earlier on the same path did get gradients, and the line that used this one discards its result.
    """
    call = end.cut.call
    if end.kind != "unused" or not (_is_thrown_away(facts, call) or _is_replaced_by_root(facts, call, end.backward)):
        return False
    inputs = [access.tensor for access in call.inputs]
    before = (access.tensor for n in inputs for _, maker in ancestry(facts, n, call.index) for access in maker.inputs)
    return any(number in trained for number in before)


def _is_thrown_away(facts: TraceIndex, call: Call) -> bool:
    """Returns whether the statement of a call discards its value, or that of a caller to which functions return it."""
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
    """Returns whether the line stores a root instead: library code called there made this value, and the root after
    it."""
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
