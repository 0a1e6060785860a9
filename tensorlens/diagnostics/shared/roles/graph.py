"""Finds lines that the rejected call's tensors depend on.

They made tensors share memory, made the tensor that a message names, or recorded an operation without a derivative.
"""

from __future__ import annotations

from collections.abc import Callable

from tensorlens.analysis.lineage import ancestry, find_cut, leaf_above, leaves_above
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.diagnostics.shared.rejected_call import LabelledSite, RejectedCall
from tensorlens.diagnostics.shared.roles.tensors import leaf, leaf_site, not_differentiable
from tensorlens.diagnostics.shared.wording import op_text
from tensorlens.records.error_messages import argument_named
from tensorlens.records.model import Call


def leaf_of_argument(rejected: RejectedCall) -> LabelledSite | None:
    """Finds the leaf that the argument in the message was computed from; without a name in it, the call's first
    leaf. None if the argument is not known."""
    name = argument_named(rejected.message)
    arguments = () if rejected.failure is None else rejected.failure.arguments
    tensors = [argument.tensor for argument in arguments if argument.name == name]
    above = [leaf_above(rejected.facts, number, rejected.index) for number in tensors]
    if name and tensors:
        return None if above[0] is None else leaf_site(rejected, above[0])
    return leaf(rejected)


def dead_end(rejected: RejectedCall) -> LabelledSite | None:
    """Finds the forward call whose backward cannot be differentiated again; else the operation without a derivative.
    None if neither was recorded."""
    nodes = () if rejected.failure is None else rejected.failure.dead_ends
    for node in nodes:
        call = None if node.sequence is None else rejected.facts.call_of_node(node.sequence, rejected.index)
        if call is not None:
            number = call.outputs[0].tensor if call.outputs else None
            text = "its backward has no derivative"
            return LabelledSite(number, call.site, text)
    return not_differentiable(rejected)


def stopped(rejected: RejectedCall) -> LabelledSite | None:
    """Finds the forward call whose backward formula ran last."""
    node = None if rejected.failure is None else rejected.failure.stopped_at
    call = None if node is None else rejected.facts.call_of_node(node.sequence, rejected.index, node.name)
    if node is None or call is None:
        return None
    number = call.outputs[0].tensor if call.outputs else None
    return LabelledSite(number, call.site, "backward ended in this operation")


def result_of_stopped(rejected: RejectedCall) -> LabelledSite | None:
    """Finds the first operation on a result of the call whose backward formula ran last."""
    node = None if rejected.failure is None else rejected.failure.stopped_at
    call = None if node is None else rejected.facts.call_of_node(node.sequence, rejected.index, node.name)
    results = set() if call is None else {access.tensor for access in call.outputs}
    for use in rejected.facts.calls:
        number = next((a.tensor for a in use.inputs if a.tensor in results), None)
        if call is not None and call.index < use.index < rejected.index and number is not None:
            return LabelledSite(number, use.site, f"{op_text(use.op)} uses {rejected.name(number)}")
    return None


def of_sparse(rejected: RejectedCall) -> LabelledSite | None:
    """Finds a recorded operation from sparse tensors to a sparse tensor: they have no storage."""
    facts = rejected.facts
    for access in rejected.inputs:
        for number, call in ancestry(facts, access.tensor, rejected.index):
            read = [a.tensor for a in call.inputs]
            if read and call.nodes[1] > call.nodes[0] and all(facts.tensor(n).storage is None for n in (number, *read)):
                return LabelledSite(number, call.site, f"{rejected.name(number)} is sparse")
    return None


def never_required(rejected: RejectedCall) -> LabelledSite | None:
    """Finds the first of the call's tensors that does not require grad, or a tensor that it was computed from."""
    facts = rejected.facts
    number = rejected.first(lambda n: not facts.requires_grad(n, rejected.index))
    cut = None if number is None else find_cut(facts, number, rejected.index)
    origin = number if cut is None or cut.leaf is None else cut.leaf
    use = None if origin is None else facts.first_use(origin)
    return None if use is None else LabelledSite(origin, use.site, f"{rejected.name(origin)} does not require grad")


def gradient_assigned(rejected: RejectedCall) -> LabelledSite | None:
    """Finds the last assignment to `.grad` of a leaf that the call's tensors were computed from."""
    facts = rejected.facts
    leaves = {leaf for access in rejected.inputs for leaf in leaves_above(facts, access.tensor, rejected.index)}
    for call in reversed(facts.calls):
        if call.index < rejected.index and call.op == "Tensor.grad.__set__" and call.inputs[0].tensor in leaves:
            name = rejected.name(call.inputs[0].tensor)
            return LabelledSite(call.inputs[0].tensor, call.site, f"the gradient of {name} is assigned here")
    return None


def outer_call(rejected: RejectedCall) -> LabelledSite | None:
    """Finds the line that called torch, if torch then called the user's code with the rejected line."""
    stack = () if rejected.failure is None else rejected.failure.stack
    return LabelledSite(None, stack[-2], "called from here") if len(stack) > 1 else None


def shared(rejected: RejectedCall) -> LabelledSite | None:
    """Finds the line that made one of the call's tensors share memory with another tensor or an array."""
    facts = rejected.facts
    tensors = {access.tensor for access in rejected.inputs}
    made = [(a.tensor, call) for a in rejected.inputs if (call := facts.creator(a.tensor)) is not None]
    pairs = [(number, call, source) for number, call in made for source in _aliases(facts, number, call)]
    for number, call, source in sorted(pairs, key=lambda pair: pair[2] not in tensors):
        return LabelledSite(number, call.site, f"{rejected.name(number)} shares memory with {rejected.name(source)}")
    for number, call in made:
        if call.op in _FROM_ARRAY:
            return LabelledSite(number, call.site, f"{rejected.name(number)} shares memory with an array")
    return _exported(rejected, tensors)


def shared_with_array(rejected: RejectedCall) -> LabelledSite:
    return LabelledSite(None, rejected.site, f"{op_text(rejected.op)} makes a tensor on this memory")


def _aliases(facts: TraceIndex, number: int, made: Call) -> list[int]:
    """Lists the inputs that share memory with the tensor that a call made from them."""
    storage = facts.tensor(number).storage
    return [a.tensor for a in made.inputs if a.tensor != number and facts.tensor(a.tensor).storage == storage]


def _exported(rejected: RejectedCall, tensors: set[int]) -> LabelledSite | None:
    """Finds the last call that shared the memory of one of the tensors with an array."""
    for call in reversed(rejected.facts.calls):
        if call.index < rejected.index and call.op in _TO_ARRAY and call.inputs and call.inputs[0].tensor in tensors:
            number = call.inputs[0].tensor
            return LabelledSite(number, call.site, f"{op_text(call.op)} shares the memory of {rejected.name(number)}")
    return None


_FROM_ARRAY = ("torch.from_numpy", "torch.frombuffer", "torch.as_tensor", "torch.asarray", "torch.from_dlpack")
_TO_ARRAY = ("Tensor.numpy", "Tensor.__array__", "Tensor.__dlpack__")


ROLES: dict[str, Callable[[RejectedCall], LabelledSite | None]] = {
    "leaf_made_here:argument": leaf_of_argument,
    "graph_built_here:sparse": of_sparse,
    "graph_built_here:dead_end": dead_end,
    "graph_built_here:stopped": stopped,
    "value_made_here:stopped": result_of_stopped,
    "value_made_here:assigned": gradient_assigned,
    "leaf_made_here:never": never_required,
    "called_here:outer": outer_call,
    "shared_here": shared,
    "shared_here:with_array": shared_with_array,
}
