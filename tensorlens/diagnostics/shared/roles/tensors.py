"""Where the things that PyTorch refused came from: for each role in a cause, the function that finds its line.

Each function answers for one refused call or one warning (`RejectedCall`) from the recorded facts, or says None.
"""

from __future__ import annotations

from collections.abc import Callable

from tensorlens.analysis.contexts import failed_backward_at, recomputing_checkpoint
from tensorlens.analysis.lineage import ancestry, leaf_above, leaf_origin
from tensorlens.analysis.naming.names import shape_text
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.diagnostics.shared.rejected_call import LabelledSite as Spot
from tensorlens.diagnostics.shared.rejected_call import RejectedCall as Refusal
from tensorlens.diagnostics.shared.roles.inference import gradient_in_inference, made_in_inference
from tensorlens.diagnostics.shared.wording import node_text, op_text
from tensorlens.records.model import Call


def leaf(refusal: Refusal) -> Spot | None:
    """The leaf that requires grad among the call's tensors or under them as a base; else the nearest above them."""
    facts = refusal.facts
    under = [(a.tensor, facts.tensor(a.tensor).base) for a in refusal.inputs]
    found = [n for pair in under for n in pair if n is not None and refusal.is_leaf(n)]
    if not found:
        above = (leaf_above(facts, number, refusal.index) for number, _ in under)
        found = [number for number in above if number is not None]
    if not found:
        return None
    return leaf_spot(refusal, found[0])


def leaf_spot(refusal: Refusal, number: int) -> Spot:
    facts = refusal.facts
    born = leaf_origin(facts, number, refusal.index)
    site = None if born is None else born.site
    checkpoint, backward = recomputing_checkpoint(facts, refusal.index), failed_backward_at(facts, refusal.index)
    if checkpoint is not None and backward is not None and site == backward.site:
        text = "this checkpoint hands its function a detached copy, a leaf, when it is run again"
        return Spot(number, checkpoint.site, text)
    return Spot(number, site, f"{refusal.name(number)} is a leaf that requires grad")


def nonleaf(refusal: Refusal) -> Spot | None:
    number = refusal.first(refusal.is_nonleaf)
    made = None if number is None else next(iter(refusal.facts.producers(number, refusal.index)), None)
    if number is None or made is None:
        return None
    state = refusal.facts.state(number, refusal.index)
    by = f" by `{state.grad_fn}`" if state is not None and state.grad_fn else ""
    return Spot(number, made.site, f"{refusal.name(number)} is computed here{by}: not a leaf")


def view(refusal: Refusal) -> Spot | None:
    """The view among the call's tensors; of a chain of views, the one that was made without recording."""
    number = next(iter(views(refusal)), None)
    if number is None:
        return Spot(None, refusal.site, "a view is made here")
    made = _handed_out(refusal.facts, number) or refusal.facts.creator(number)
    text = f"{refusal.name(number)} is a view of {refusal.name(refusal.facts.tensor(number).base)}"
    return Spot(number, None if made is None else made.site, text)


def views(refusal: Refusal) -> list[int]:
    """The first view among the call's tensors and the views that it was taken from; those made without recording
    first."""
    chain: list[int] = []
    number = refusal.first(refusal.is_view)
    while number is not None and number not in chain:
        chain.append(number)
        made = refusal.facts.creator(number)
        sources = () if made is None else made.inputs
        number = next((a.tensor for a in sources if refusal.is_view(a.tensor)), None)
    return sorted(chain, key=lambda n: (m := refusal.facts.creator(n)) is None or m.mode == "grad")


def _handed_out(facts: TraceIndex, number: int) -> Call | None:
    """The custom Function that returned a tensor made inside it."""
    returning = (c for c in facts.calls if c.op.endswith(".apply") and any(a.tensor == number for a in c.outputs))
    return next(returning, None)


def modified(refusal: Refusal) -> Spot | None:
    """The refused change itself, or, where a later use is refused, the last change of the memory before it."""
    name = refusal.op.rpartition(".")[2]
    if (name.endswith("_") and not name.endswith("__")) or name in ("__setitem__", "") or not refusal.inputs:
        return spot(refusal)
    counter = refusal.facts.tensor(refusal.inputs[0].tensor).counter
    changes = [(event, write) for event, write in refusal.facts.writes(counter) if event.index < refusal.index]
    if not changes:
        return spot(refusal)
    event, write = changes[-1]
    return Spot(write.tensor, event.site, f"{refusal.name(write.tensor)} is changed in place here")


def base(refusal: Refusal) -> Spot | None:
    number = refusal.first(refusal.is_view)
    whole = refusal.inputs[0].tensor if refusal.inputs else None
    owner = whole if number is None else refusal.facts.tensor(number).base
    use = None if owner is None else refusal.facts.first_use(owner)
    return None if use is None else Spot(owner, use.site, f"{refusal.name(owner)} owns the memory")


def value(refusal: Refusal, position: int = -1) -> Spot | None:
    """One of the call's tensors: by default the last, the one that is handed to the first; of a tensor that was made
    in inference mode, where that was. Python code that refuses is handed what was computed last."""
    facts = refusal.facts
    gradient = gradient_in_inference(refusal) if refusal.op.endswith("backward") else None
    if gradient is not None:
        text = f"the gradient of {refusal.name(gradient[0])} is made here, in inference mode"
        return Spot(gradient[0], gradient[1].site, text)
    if not refusal.inputs:
        last = None if refusal.op else next((c for c in reversed(facts.calls) if c.index < refusal.index), None)
        number = None if last is None or not last.outputs else last.outputs[-1].tensor
    else:
        inference = made_in_inference(refusal)
        number = refusal.inputs[position].tensor if inference is None else inference
    if number is None:
        return plain_value(refusal)
    producers = facts.producers(number, refusal.index)
    use = producers[0] if producers else facts.first_use(number)
    tensor = facts.tensor(number)
    if use is not None and facts.same_line(use.site, refusal.site) and (plain := plain_value(refusal)) is not None:
        return plain
    text = f"{refusal.name(number)} is made here: shape {shape_text(tensor)}, {tensor.dtype}"
    return Spot(number, None if use is None else use.site, text)


def plain_value(refusal: Refusal) -> Spot | None:
    """The first value of plain Python or NumPy that the refused expression names."""
    found = next((v for v in refusal.values if v.site is not None and v.type not in _NO_OPERANDS), None)
    return None if found is None else Spot(None, found.site, f"`{found.name}` is made here: a {found.type}")


_NO_OPERANDS = ("bool", "str", "NoneType", "Tensor", "Parameter")


def first_value(refusal: Refusal) -> Spot | None:
    """The call's first tensor: what backward was started from."""
    return value(refusal, 0)


def graph(refusal: Refusal) -> Spot | None:
    """The recorded operation behind the call's tensors that is meant: one whose node has no derivative, else the last
    before the refused line, else the last of all."""
    facts = refusal.facts
    recorded = [
        (number, call)
        for access in refusal.inputs
        for number, call in ancestry(facts, access.tensor, refusal.index)
        if call.nodes[1] > call.nodes[0] or ((state := facts.state(number, call.index)) is not None and state.grad_fn)
    ]
    if not recorded:
        return leaf(refusal)
    here = facts.span(refusal.site)
    number, call = min(recorded, key=lambda pair: _rank(facts, pair, None if here is None else here.line))
    state = facts.state(number, call.index)
    by = f" by {node_text(state.grad_fn)}" if state is not None and state.grad_fn else ""
    return Spot(number, call.site, f"{refusal.name(number)} is recorded here{by}")


def _rank(facts: TraceIndex, pair: tuple[int, Call], line: int | None) -> int:
    number, call = pair
    state, where = facts.state(number, call.index), facts.span(call.site)
    if state is not None and (state.grad_fn or "").endswith("NotImplemented"):
        return 0
    return 1 if where is not None and where.line != line else 2


def spot(refusal: Refusal) -> Spot | None:
    if refusal.raised is not None:
        return Spot(None, refusal.raised, "refused here")
    return Spot(None, refusal.site, f"{op_text(refusal.op)} is refused" if refusal.op else "refused here")


def needed(refusal: Refusal) -> Spot | None:
    backward = (
        None
        if recomputing_checkpoint(refusal.facts, refusal.index) is None
        else failed_backward_at(refusal.facts, refusal.index)
    )
    if backward is not None:
        return Spot(None, backward.site, "backward runs the checkpointed function again")
    return Spot(None, refusal.site, f"{op_text(refusal.op)} needs it here" if refusal.op else "needed here")


ROLES: dict[str, Callable[[Refusal], Spot | None]] = {
    "leaf_made_here": leaf,
    "nonleaf_made_here": nonleaf,
    "view_made_here": view,
    "base_made_here": base,
    "value_made_here": value,
    "value_made_here:first": first_value,
    "graph_built_here": graph,
    "rejected_here": spot,
    "modified_here": modified,
    "needed_here": needed,
    "observed_here": needed,
}
