"""Describes a cut in the graph: its labels, its reason and its fixes."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.lineage import Cut, is_update_by_hand, leaf_origin
from tensorlens.analysis.trace_index import OPS_LEAVING_TORCH, TraceIndex
from tensorlens.diagnostics.shared.wording import fix, named, op_text
from tensorlens.records.model import GradMode
from tensorlens.records.report import Fix, Label

_INTEGERS = ("int", "uint", "bool")


def cut_labels(facts: TraceIndex, cut: Cut | None) -> Iterator[Label | None]:
    """Labels the cut, then the switch that caused it, then the leaf that gets no gradient because of it."""
    if cut is None:
        return
    made = cut.call
    yield facts.label("graph_cut_here", made.site, _cut_text(facts, cut))
    switch = switch_of(facts, cut)
    if switch is not None:
        where = "this decorator" if switch.decorator else f"`{switch.cause}`"
        yield facts.label("grad_mode_off_here", switch.site, f"gradient recording is off from here on ({where})")
    if cut.leaf is not None:
        name = named(facts, cut.leaf)
        if cut.source is None:
            born, text = facts.first_use(cut.leaf), f"{name} does not require grad"
        else:
            born, text = leaf_origin(facts, cut.leaf, cut.call.index), f"{name} requires grad"
        yield facts.label("leaf_made_here", None if born is None else born.site, text)


def switch_of(facts: TraceIndex, cut: Cut) -> GradMode | None:
    """Finds the switch of gradient recording, such as the script's `no_grad`, that caused the cut."""
    if cut.source is None or _is_switch(facts, cut) or not _recording_off(facts, cut):
        return None
    return facts.mode_switch(cut.call.index)


def _recording_off(facts: TraceIndex, cut: Cut) -> bool:
    return cut.call.mode != "grad"


def _is_switch(facts: TraceIndex, cut: Cut) -> bool:
    """Returns whether the cut is a call such as `requires_grad_(False)`, which changed the tensor's own flag."""
    return cut.source in {access.tensor for access in cut.call.inputs} & {state.tensor for state in cut.call.states}


def _is_integer(facts: TraceIndex, cut: Cut) -> bool:
    return any(facts.tensor(a.tensor).dtype.startswith(_INTEGERS) for a in cut.call.outputs)


def _cut_text(facts: TraceIndex, cut: Cut) -> str:
    if cut.source is None:
        return f"{op_text(cut.call.op)} has nothing to record: no input requires grad"
    source = named(facts, cut.source, cut.call.index)
    if _is_switch(facts, cut):
        return f"{source} stops requiring grad here"
    if _recording_off(facts, cut):
        return f"{op_text(cut.call.op)} of {source} is not recorded"
    if cut.call.op in OPS_LEAVING_TORCH:
        return f"the values of {source} leave torch here"
    if _is_integer(facts, cut):
        dtype = facts.tensor(cut.call.outputs[0].tensor).dtype
        return f"the result of {op_text(cut.call.op)} is {dtype}: whole numbers have no gradient"
    return f"the result of {op_text(cut.call.op)} has no history: {source} is left behind"


def cut_reason(facts: TraceIndex, cut: Cut) -> str:
    """Explains why the history ends at this call."""
    if cut.source is None:
        return "autograd records an operation only if one of its inputs requires grad, and none does"
    if _is_switch(facts, cut):
        return "a tensor that does not require grad is a constant to everything computed from it afterwards"
    if _recording_off(facts, cut):
        mode = "inference mode" if cut.call.mode == "inference" else "gradient recording switched off"
        within = "" if switch_of(facts, cut) is not None else " inside the library function called here"
        return f"the operation ran with {mode}{within}, so its result is a constant to autograd"
    if cut.call.op in OPS_LEAVING_TORCH:
        return "plain Python numbers and NumPy arrays carry no graph, so what is computed from them is a constant"
    if cut.call.op == "autograd.grad":
        return "a gradient has a graph of its own only if it was asked for with `create_graph=True`"
    if _is_integer(facts, cut):
        return "only floating point and complex tensors carry gradients"
    return f"{op_text(cut.call.op)} returns the values without their graph, so what is computed from them is a constant"


def cut_fixes(facts: TraceIndex, cut: Cut | None) -> Iterator[Fix]:
    """Suggests fixes for this cut."""
    if cut is None:
        return
    op = op_text(cut.call.op)
    if cut.source is None:
        yield fix(f"make what is to be trained require grad: `{facts.name(cut.leaf or 0)}.requires_grad_()` before use")
    elif _is_switch(facts, cut):
        yield fix(f"let {named(facts, cut.source)} require grad while it is used, or leave it out of what is trained")
    elif _recording_off(facts, cut):
        yield _recording_fix(facts, cut)
    elif cut.call.op == "autograd.grad":
        yield fix("pass `create_graph=True` to the call that computes the gradient")
    elif cut.call.op in OPS_LEAVING_TORCH or cut.left_torch is not None:
        yield fix("stay in torch between the parameters and the loss: use tensor operations on the values")
    elif cut.call.op in ("torch.tensor", "torch.as_tensor"):
        yield fix("use the tensor itself; to join several, `torch.stack` keeps their history")
    elif _is_integer(facts, cut):
        yield fix(f"use something differentiable in place of {op}: a soft choice such as `softmax`, or the values")
    else:
        yield fix(f"leave out {op} on the path from the parameters to the loss")


def _recording_fix(facts: TraceIndex, cut: Cut) -> Fix:
    switch = switch_of(facts, cut)
    if switch is None:
        return fix("compute it with a function that records, such as `rsample()` in place of `sample()`")
    what = f"`{switch.cause}`"
    if is_update_by_hand(facts, cut):
        leaf = named(facts, cut.source, cut.call.index)
        return fix(f"update {leaf} in place inside {what} (`-=`, `copy_()`): it stays the leaf that it was")
    return fix(f"compute what is to be differentiated outside {what}, and keep {what} for what needs no gradient")
