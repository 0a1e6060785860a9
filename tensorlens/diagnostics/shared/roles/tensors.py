"""Finds the origin of the tensors that PyTorch rejected, with one function for each role.

Each function finds the line of its role for one rejected call or warning, or returns None.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable

from tensorlens.analysis.contexts import failed_backward_at, recomputing_checkpoint
from tensorlens.analysis.lineage import ancestry, leaf_above, leaf_origin
from tensorlens.analysis.naming.names import shape_text
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.diagnostics.shared.edits.kept_attributes import kept_at
from tensorlens.diagnostics.shared.rejected_call import LabelledSite, RejectedCall
from tensorlens.diagnostics.shared.roles.inference import gradient_in_inference, made_in_inference
from tensorlens.diagnostics.shared.wording import op_text
from tensorlens.records.model import Call


def leaf(rejected: RejectedCall) -> LabelledSite | None:
    """Finds the leaf that requires grad among the call's tensors and their bases; else one that they were computed
    from."""
    facts = rejected.facts
    under = [(a.tensor, facts.tensor(a.tensor).base) for a in rejected.inputs]
    leaves = [n for pair in under for n in pair if n is not None and rejected.is_leaf(n)]
    if not leaves:
        above = (leaf_above(facts, number, rejected.index) for number, _ in under)
        leaves = [number for number in above if number is not None]
    if not leaves:
        return None
    return leaf_site(rejected, leaves[0])


def leaf_site(rejected: RejectedCall, number: int) -> LabelledSite:
    facts = rejected.facts
    born = leaf_origin(facts, number, rejected.index)
    site = None if born is None else born.site
    checkpoint, backward = recomputing_checkpoint(facts, rejected.index), failed_backward_at(facts, rejected.index)
    if checkpoint is not None and backward is not None and site == backward.site:
        text = "runs its function again on a copy without history"
        return LabelledSite(number, checkpoint.site, text)
    return LabelledSite(number, site, f"{rejected.name(number)} is a leaf that requires grad")


def nonleaf(rejected: RejectedCall) -> LabelledSite | None:
    number = rejected.first(rejected.is_nonleaf)
    made = None if number is None else next(iter(rejected.facts.producers(number, rejected.index)), None)
    if number is None or made is None:
        return None
    return LabelledSite(number, made.site, f"{rejected.name(number)} is computed here: not a leaf")


def kept_nonleaf(rejected: RejectedCall) -> LabelledSite | None:
    """Finds the non-leaf, and the line that keeps it as an attribute; else the line that computed it."""
    found = nonleaf(rejected)
    place = None if found is None or found.tensor is None else kept_at(rejected.facts, found.tensor, rejected.index)
    if found is None or place is None:
        return found
    line = place.file, place.line
    sites = (each.id for each in rejected.facts.trace.sites if (each.span.file, each.span.line) == line)
    made = next(sites, None)
    if made is not None:
        return LabelledSite(found.tensor, made, f"{rejected.name(found.tensor)} is computed here: not a leaf")
    text = f"{rejected.name(found.tensor)} is kept here, with its graph"
    return LabelledSite(found.tensor, None, text, place)


def view(rejected: RejectedCall) -> LabelledSite | None:
    """Finds the view among the call's tensors. In a chain of views it prefers one that was made without recording."""
    number = next(iter(views(rejected)), None)
    if number is not None:
        return _view_site(rejected, number)
    first = rejected.inputs[0].tensor if rejected.inputs else None
    if rejected.is_inplace():  # `table[0] = 1`: the write makes the view
        return LabelledSite(None, rejected.site, "a view is made here")
    return LabelledSite(first, None, "")


def _view_site(rejected: RejectedCall, number: int) -> LabelledSite:
    made = _returning_call(rejected.facts, number) or rejected.facts.creator(number)
    text = f"{rejected.name(number)} is a view of {rejected.name(rejected.facts.tensor(number).base)}"
    return LabelledSite(number, None if made is None else made.site, text)


def first_view(rejected: RejectedCall) -> LabelledSite | None:
    """Finds the view that was taken from the base itself, if others were then taken from it."""
    chain = chain_of_views(rejected)
    return _view_site(rejected, chain[-1]) if chain else view(rejected)


def views(rejected: RejectedCall) -> list[int]:
    """Lists the first view among the call's tensors and the views that it was taken from.

    Those made without recording come first.
    """
    return sorted(chain_of_views(rejected), key=lambda n: (m := rejected.facts.creator(n)) is None or m.mode == "grad")


def chain_of_views(rejected: RejectedCall) -> list[int]:
    chain: list[int] = []
    number = rejected.first(rejected.is_view)
    while number is not None and number not in chain:
        chain.append(number)
        made = rejected.facts.creator(number)
        sources = () if made is None else made.inputs
        number = next((a.tensor for a in sources if rejected.is_view(a.tensor)), None)
    return chain


def _returning_call(facts: TraceIndex, number: int) -> Call | None:
    """Finds the call of a custom Function that returned a tensor which its `forward` had made."""
    returning = (c for c in facts.calls if c.op.endswith(".apply") and any(a.tensor == number for a in c.outputs))
    return next(returning, None)


def modified(rejected: RejectedCall) -> LabelledSite | None:
    """Finds the change in place: the rejected call itself, else the last change before a rejected use of the memory.

    The memory of a view counts from where the view was made. None if no change was recorded.
    """
    name = rejected.op.rpartition(".")[2]
    is_change = "is being modified inplace" in rejected.message or name in ("__setitem__", "")
    if is_change or (name.endswith("_") and not name.endswith("__")) or not rejected.inputs:
        return failing_call(rejected)
    first = rejected.facts.tensor(rejected.inputs[0].tensor)
    since = -1 if first.base is None or first.created_by is None else first.created_by
    written = rejected.facts.writes(first.counter)
    changes = [(event, write) for event, write in written if since < event.index < rejected.index]
    if not changes:
        return None
    event, write = changes[-1]
    return LabelledSite(write.tensor, event.site, f"{rejected.name(write.tensor)} is changed in place here")


def base(rejected: RejectedCall) -> LabelledSite | None:
    number = rejected.first(rejected.is_view)
    whole = rejected.inputs[0].tensor if rejected.inputs else None
    owner = whole if number is None else rejected.facts.tensor(number).base
    use = None if owner is None else rejected.facts.first_use(owner)
    return None if use is None else LabelledSite(owner, use.site, f"{rejected.name(owner)} owns the memory")


def value(rejected: RejectedCall, position: int = -1) -> LabelledSite | None:
    """Finds where one of the call's tensors was made: by default an inference tensor, else the last one.

    An error of Python code has no tensors: there it is a plain value that the expression reads.
    """
    gradient = gradient_in_inference(rejected) if rejected.op.endswith("backward") else None
    if gradient is not None:
        text = f"the gradient of {rejected.name(gradient[0])} is made here, in inference mode"
        return LabelledSite(gradient[0], gradient[1].site, text)
    if not rejected.inputs:
        number = _read_by_expression(rejected)
        return plain_value(rejected) if number is None else _made(rejected, number)
    inference = made_in_inference(rejected)
    number = rejected.inputs[position].tensor if inference is None else inference
    return _made(rejected, number)


def _read_by_expression(rejected: RejectedCall) -> int | None:
    """Finds the tensor whose attribute a rejected expression reads, by the name that it had in that function."""
    facts, span = rejected.facts, rejected.facts.span(rejected.site)
    node = None if span is None else facts.names.syntax.node(span)
    value = node.value if isinstance(node, ast.Attribute) else None
    name = None if value is None else ast.unparse(value)
    scope = "" if rejected.site is None else facts.trace.sites[rejected.site].function
    return next((b.tensor for b in facts.trace.end.bindings if (b.name, b.scope) == (name, scope)), None)


def _made(rejected: RejectedCall, number: int) -> LabelledSite | None:
    facts = rejected.facts
    producers = facts.producers(number, rejected.index)
    use = producers[0] if producers else facts.first_use(number)
    tensor = facts.tensor(number)
    if use is not None and facts.same_line(use.site, rejected.site) and (plain := plain_value(rejected)) is not None:
        return plain
    text = f"{rejected.name(number)} is made here: shape {shape_text(tensor)}, {tensor.dtype}"
    return LabelledSite(number, None if use is None else use.site, text)


def plain_value(rejected: RejectedCall) -> LabelledSite | None:
    """Finds the first value of plain Python or NumPy that the rejected expression reads."""
    plain = next((v for v in rejected.values if v.site is not None and v.type not in _NO_OPERANDS), None)
    return None if plain is None else LabelledSite(None, plain.site, f"`{plain.name}` is made here: a {plain.type}")


_NO_OPERANDS = ("bool", "str", "NoneType", "Tensor", "Parameter")


def first_value(rejected: RejectedCall) -> LabelledSite | None:
    """Finds where the call's first tensor was made, such as the root of a backward pass."""
    return value(rejected, 0)


def graph(rejected: RejectedCall) -> LabelledSite | None:
    """Finds a recorded operation that the call's tensors were computed by.

    It prefers one without a derivative, then the last one on another line, then the last one of all.
    """
    facts = rejected.facts
    recorded = [
        (number, call)
        for access in rejected.inputs
        for number, call in ancestry(facts, access.tensor, rejected.index)
        if call.nodes[1] > call.nodes[0] or ((state := facts.state(number, call.index)) is not None and state.grad_fn)
    ]
    if not recorded:
        return leaf(rejected)
    here = facts.span(rejected.site)
    number, call = min(recorded, key=lambda pair: _rank(facts, pair, None if here is None else here.line))
    return LabelledSite(number, call.site, f"{rejected.name(number)} is computed here")


def not_differentiable(rejected: RejectedCall) -> LabelledSite | None:
    """Finds the recorded operation without a derivative that the call's tensors were computed by: its node says so, or
    PyTorch's message names it."""
    facts, message = rejected.facts, rejected.message
    for access in rejected.inputs:
        for number, call in ancestry(facts, access.tensor, rejected.index):
            state = facts.state(number, call.index)
            name = call.op.rpartition(".")[2].strip("_")
            is_named = re.search(rf"\b_*{re.escape(name)}\d*_*\b", message) is not None
            if state is None or not state.grad_fn:
                continue
            is_recorded = call.nodes[1] > call.nodes[0]  # a node without a derivative takes no sequence number
            if state.grad_fn.endswith("NotImplemented") or (name and is_named and is_recorded):
                return LabelledSite(number, call.site, f"{rejected.name(number)} is computed here")
    return None


def _rank(facts: TraceIndex, pair: tuple[int, Call], line: int | None) -> int:
    number, call = pair
    state, where = facts.state(number, call.index), facts.span(call.site)
    if state is not None and (state.grad_fn or "").endswith("NotImplemented"):
        return 0
    return 1 if where is not None and where.line != line else 2


def failing_call(rejected: RejectedCall) -> LabelledSite:
    if rejected.raised is not None:
        return LabelledSite(None, rejected.raised, "the error is raised here")
    return LabelledSite(None, rejected.site, "PyTorch refuses this" if rejected.failure else "PyTorch warns here")


def needed(rejected: RejectedCall) -> LabelledSite | None:
    backward = (
        None
        if recomputing_checkpoint(rejected.facts, rejected.index) is None
        else failed_backward_at(rejected.facts, rejected.index)
    )
    if backward is not None:
        return LabelledSite(None, backward.site, "backward runs the checkpointed function again")
    return LabelledSite(None, rejected.site, _need(rejected))


def _need(rejected: RejectedCall) -> str:
    if rejected.is_backward():
        return "backward runs here"
    if rejected.op.endswith(".__get__"):
        return "read here"
    return f"{op_text(rejected.op)} uses it here" if rejected.op else "used here"


ROLES: dict[str, Callable[[RejectedCall], LabelledSite | None]] = {
    "leaf_made_here": leaf,
    "nonleaf_made_here": nonleaf,
    "nonleaf_made_here:kept": kept_nonleaf,
    "view_made_here": view,
    "view_made_here:first": first_view,
    "base_made_here": base,
    "value_made_here": value,
    "value_made_here:first": first_value,
    "graph_built_here": graph,
    "rejected_here": failing_call,
    "modified_here": modified,
    "needed_here": needed,
    "observed_here": needed,
}
