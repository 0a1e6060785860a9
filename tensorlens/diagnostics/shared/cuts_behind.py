"""Finds the cuts behind a cut: without the first one, the gradient still ends at the next, before some parameters."""

from __future__ import annotations

from tensorlens.analysis.lineage import Cut, ancestry, graph_leaves
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.diagnostics.shared.edits.cuts import without_method
from tensorlens.diagnostics.shared.optimizers import several
from tensorlens.diagnostics.shared.wording import fix, op_text
from tensorlens.records.report import Edit, Fix

_PLAIN_CUTS = ("Tensor.detach", "Tensor.data.__get__")


def cuts_behind(facts: TraceIndex, cut: Cut) -> list[tuple[Cut, list[int]]]:
    """Lists further `detach()` and `.data` above a cut, each with parameters of an optimizer that it alone cuts off.

    Parameters that some backward gave a gradient do not count: they have another way.
    """
    if cut.source is None:
        return []
    at = cut.call.index
    reached = graph_leaves(facts, cut.source, at)
    trained = {gradient.tensor for backward in facts.backwards for gradient in backward.gradients}
    made = (call for call in facts.calls if call.op.startswith("optim."))
    missing = {access.tensor for call in made for access in call.inputs} - reached - trained
    found: list[tuple[Cut, list[int]]] = []
    for _, call in ancestry(facts, cut.source, at) if missing else ():
        if call.op not in _PLAIN_CUTS or not call.inputs or any(call.index == each.call.index for each, _ in found):
            continue
        source = call.inputs[0].tensor
        behind = sorted(graph_leaves(facts, source, call.index) & missing) if facts.requires_grad(source, at) else []
        if behind:
            found.append((Cut(call, source, behind[0]), behind))
    return found


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
