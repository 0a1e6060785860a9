"""Values that the program throws away: a module was run for what a hook takes from it, and not for its result."""

from __future__ import annotations

from tensorlens.analysis.lineage import ancestry
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.parameters_without_gradient import PathEnd
from tensorlens.records.model import Backward, Call, Site


def is_discarded(facts: TraceIndex, way: PathEnd, trained: set[int]) -> bool:
    """Tell whether what a parameter went into was thrown away by the line that ran it, while parameters before it on
    the same way did get gradients."""
    call = way.cut.call
    if way.kind != "unused" or not (_thrown_away(facts, call) or _kept_by_library(facts, call, way.backward)):
        return False
    inputs = [access.tensor for access in call.inputs]
    before = (access.tensor for n in inputs for _, maker in ancestry(facts, n, call.index) for access in maker.inputs)
    return any(number in trained for number in before)


def _thrown_away(facts: TraceIndex, call: Call) -> bool:
    """Whether the statement behind a call, or behind the functions that return its value, keeps nothing of it."""
    if any(backward.site == call.site for backward in facts.backwards):
        return False  # the line runs a whole training
    site: Site | None = facts.trace.sites[call.site]
    seen: set[int] = set()
    while site is not None and site.id not in seen:
        seen.add(site.id)
        thrown_away = facts.names.syntax.is_thrown_away(site.span)
        if thrown_away is not None:
            return thrown_away
        site = None if site.caller is None else facts.trace.sites[site.caller]
    return False


def _kept_by_library(facts: TraceIndex, call: Call, backward: Backward) -> bool:
    """Whether library code made the value on a line of the program's whose own value is a root made after it."""
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
