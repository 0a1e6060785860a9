"""Finds out why a `.grad` is None: whether backward ran, used the tensor, and where the path was cut."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from tensorlens.analysis.lineage import MAX_DEEP, Cut, ancestry, leaf_above
from tensorlens.analysis.naming.assignments import receiver
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.records.model import Backward, Call, Failure

GRAD_SET = "Tensor.grad.__set__"
GRAD_READ = "Tensor.grad.__get__"
GRAD_FN_READ = "Tensor.grad_fn.__get__"


@dataclass(frozen=True, slots=True)
class MissingGradient:
    """A `.grad` that the script read and that is None."""

    tensor: int
    read: Call
    is_leaf: bool
    requires_grad: bool
    passes: tuple[Backward, ...]  # the backward passes before the read, since the gradient was last set to None
    cleared: Call | None  # the call that set it to None, if no backward pass ran after it
    cut: Cut | None  # where the path from the tensor to a root is cut; None: no cut was found
    used: bool  # a root of some backward was computed from the tensor


def missing_gradient(facts: TraceIndex, failure: Failure) -> MissingGradient | None:
    """Explains the last read on the failing line of a `.grad` that was None; None if the line read no such `.grad`."""
    read = last_read_of_none(facts, failure, GRAD_READ)
    return None if read is None or _is_about_another(facts, failure, read) else _examine(facts, read)


def _is_about_another(facts: TraceIndex, failure: Failure, read: Call) -> bool:
    """Returns whether an AttributeError is about an attribute of something other than the `.grad` that was read."""
    span, place = facts.span(failure.site), facts.span(read.site)
    if span is None or place is None or "has no attribute" not in failure.message:
        return False
    owner = receiver(facts.trace.sources.get(span.file, ""), span)
    node = facts.names.syntax.node(place)
    return owner is not None and node is not None and not owner.startswith(ast.unparse(node))


def last_read_of_none(facts: TraceIndex, failure: Failure, op: str) -> Call | None:
    """Finds the last read of an attribute on the failing line that returned None."""
    span = facts.span(failure.site)
    for call in reversed(facts.calls):
        if call.index >= failure.index or call.op != op or call.outputs:
            continue
        where = facts.span(call.site)
        if span is None or where is None or where.file != span.file:
            return None
        if not span.line <= where.line <= span.end_line and where.line != span.line:
            return None
        return call
    return None


def _examine(facts: TraceIndex, read: Call) -> MissingGradient:
    number = read.inputs[0].tensor
    state = facts.state(number, read.index)
    cleared = _last_reset(facts, number, read.index)
    since = -1 if cleared is None else cleared.index
    passes = tuple(b for b in facts.backwards if since < b.index < read.index and not b.failed)
    cut, used = None, False
    for backward in passes:
        for root in backward.roots:
            root_cut, root_used = cut_between(facts, root.tensor, number, backward.index)
            used = used or root_used
            cut = cut or root_cut
    is_leaf = state is None or state.is_leaf
    requires_grad = state is not None and state.requires_grad
    return MissingGradient(number, read, is_leaf, requires_grad, passes, None if passes else cleared, cut, used)


def _last_reset(facts: TraceIndex, number: int, before: int) -> Call | None:
    """Finds the last call that set the gradient of a tensor to None, such as `zero_grad()`."""
    for call in reversed(facts.calls):
        if call.index < before and call.op == GRAD_SET and [access.tensor for access in call.inputs] == [number]:
            return call
    return None


def cut_between(facts: TraceIndex, root: int, leaf: int, before: int) -> tuple[Cut | None, bool]:
    """Returns the cut on the path from `leaf` to `root`, and whether `root` was computed from `leaf` at all."""
    used = False
    for number, call in ancestry(facts, root, before, MAX_DEEP):
        for access in call.inputs:
            if access.tensor == leaf:
                used = True
            if access.tensor == number or facts.requires_grad(number, call.index):
                continue
            if facts.requires_grad(access.tensor, call.index - 1) and _descends(facts, access.tensor, leaf, call.index):
                return Cut(call, access.tensor, leaf_above(facts, access.tensor, call.index)), True
    return None, used


def _descends(facts: TraceIndex, number: int, leaf: int, before: int) -> bool:
    """Returns whether a tensor is `leaf` or was computed from it."""
    if number == leaf:
        return True
    return any(access.tensor == leaf for _, call in ancestry(facts, number, before) for access in call.inputs)
