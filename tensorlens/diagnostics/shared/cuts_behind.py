"""Finds the cuts behind a cut and beside it: without the first one, the gradient still ends at another."""

from __future__ import annotations

from tensorlens.analysis.lineage import Cut, ancestry, cuts_above, graph_leaves, reads_gradient
from tensorlens.analysis.plain_values import may_require_grad, takes_shape_only
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.diagnostics.shared.edits.cuts import without_method
from tensorlens.diagnostics.shared.optimizers import several
from tensorlens.diagnostics.shared.wording import fix, op_text
from tensorlens.records.report import Edit, Fix

_PLAIN_CUTS = ("Tensor.detach", "Tensor.data.__get__")


def cuts_behind(facts: TraceIndex, cut: Cut, root: int | None = None) -> list[tuple[Cut, list[int]]]:
    """Lists further `detach()` and `.data`, each with the parameters of an optimizer that are cut off there too.

    They are above the cut, or on other ways from `root`. Parameters that some backward gave a gradient do not count:
    they have another way.
    """
    if cut.source is None:
        return []
    at = cut.call.index
    reached = graph_leaves(facts, cut.source, at)
    for call in facts.calls:
        if (call.site, call.op) == (cut.call.site, cut.call.op):  # other runs of the same line
            reached |= {leaf for access in call.inputs for leaf in graph_leaves(facts, access.tensor, call.index)}
    trained = {gradient.tensor for backward in facts.backwards for gradient in backward.gradients}
    made = (call for call in facts.calls if call.op.startswith("optim."))
    missing = {access.tensor for call in made for access in call.inputs} - reached - trained
    found: list[tuple[Cut, list[int]]] = []
    end = facts.events[-1].index + 1
    beside = [each.call for each in cuts_above(facts, root, end)] if root is not None and missing else []
    above = [call for _, call in ancestry(facts, cut.source, at)] if missing else []
    for call in (*beside, *above):
        known = (cut.call.index, *(each.call.index for each, _ in found))
        if call.op not in _PLAIN_CUTS or not call.inputs or call.index in known:
            continue
        source = call.inputs[0].tensor
        behind = (
            sorted(graph_leaves(facts, source, call.index) & missing) if facts.requires_grad(source, call.index) else []
        )
        if behind:
            found.append((Cut(call, source, behind[0]), behind))
    return found


def cut_beside(facts: TraceIndex, cut: Cut, root: int | None) -> Cut | None:
    """Finds a cut on another way to the same leaves: nothing shows which of the two is a mistake.

    What the same switch kept from being recorded has one cause, and whole numbers have no gradient.
    """
    if root is None or cut.source is None or cut.left_torch is not None:
        return None
    end, leaves = facts.events[-1].index + 1, graph_leaves(facts, cut.source, cut.call.index)
    switch = facts.mode_switch(cut.call.index) if cut.call.mode != "grad" else None
    for other in cuts_above(facts, root, end):
        if (
            other.source is None
            or other.call.site == cut.call.site
            or reads_gradient(other.call)
            or takes_shape_only(other.call)
        ):
            continue
        if not any(may_require_grad(facts.tensor(access.tensor)) for access in other.call.outputs):
            continue
        if switch is not None and other.call.mode != "grad" and facts.mode_switch(other.call.index) is switch:
            continue
        if graph_leaves(facts, other.source, other.call.index) & leaves:
            return other
    return None


def either(facts: TraceIndex, first: Fix, other: Cut) -> Fix:
    """Leaves the choice between two cuts to the reader."""
    line = facts.trace.sites[other.call.site].span.line
    return Fix(f"{first.title}, or repair line {line}, which cuts another way", (), first.place)


def with_cuts_behind(facts: TraceIndex, first: Fix, behind: list[tuple[Cut, list[int]]]) -> Fix:
    """Repairs the cuts behind too if nothing else uses what they cut; else says which parameters stay cut off."""
    edits: list[Edit] = list(first.edits)
    for cut, _ in behind:
        users = [c for c in facts.calls if any(access.tensor == cut.source for access in c.inputs)]
        edit = without_method(facts, facts.trace.sites[cut.call.site].span, ("detach", "data"))
        if not first.edits or edit is None or len({c.site for c in users}) != 1:
            edits = []
            break
        edits += [] if edit in edits else [edit]
    lines = sorted({facts.trace.sites[cut.call.site].span.line for cut, _ in behind})
    ops = " and ".join(dict.fromkeys(op_text(cut.call.op) for cut, _ in behind))
    cut_off = [number for _, numbers in behind for number in numbers]
    names = several(facts, cut_off)
    where = f"line {' and '.join(map(str, lines))}"
    if edits:
        return fix(f"{first.title}, and {ops} on {where}, which cuts off {names}", *edits, place=first.place)
    also = f"{names} still get{'' if len(set(cut_off)) > 1 else 's'} no gradient, cut off by {ops} on {where}"
    return Fix(f"{first.title}; {also}", first.edits, first.place)
