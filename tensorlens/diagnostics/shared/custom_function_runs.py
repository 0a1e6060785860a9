"""Finds the calls of custom Functions, and what their `backward` returned."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from math import comb

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.diagnostics.shared.silent_saved_tensor import backward_of
from tensorlens.records.callbacks import Run
from tensorlens.records.model import Call

_MAX_ORDERS = 1_000


def backward_runs(facts: TraceIndex) -> Iterator[tuple[Run, Call]]:
    """Finds each run of a custom Function's `backward` that returned, with the call that made its node."""
    callbacks = facts.trace.callbacks
    for run in callbacks.runs:
        kind = callbacks.registrations[run.registration].kind
        if kind not in ("backward", "vjp") or run.ended != "returned" or run.node is None:
            continue
        call = facts.call_of_node(run.node, run.index)
        if call is not None and call.op.endswith(".apply"):
            yield run, call


def inputs_needing_gradient(facts: TraceIndex, call: Call) -> list[int]:
    """Lists the inputs of a call that require grad and that autograd sees: not those inside a list, tuple or dict."""
    nested = _nested(facts, call)
    inputs = [access.tensor for access in call.inputs if facts.requires_grad(access.tensor, call.index - 1)]
    return [number for number in dict.fromkeys(inputs) if number not in nested]


def gradient_of(facts: TraceIndex, number: int, at: int) -> str | None:
    """Returns the text of a leaf's gradient after the backward pass around event `at`."""
    backward = backward_of(facts, at)
    gradients = () if backward is None else backward.gradients
    return next((each.after for each in gradients if each.tensor == number), None)


def missing_gradients(facts: TraceIndex) -> Iterator[tuple[Run, Call, list[int]]]:
    """Yields (run, call, inputs) for the runs of a `backward` that returned None for inputs that need a gradient.

    Each `return` statement counts once. The call is the one that made the node.
    """
    seen: set[int | None] = set()
    for run, call in backward_runs(facts):
        if (backward := backward_of(facts, run.index)) is not None and backward.failed:
            continue  # what it returned was rejected, for a different reason
        missing = inputs_given_none(facts, run, call)
        if missing and run.returned not in seen:
            seen.add(run.returned)
            yield run, call, missing


def inputs_given_none(facts: TraceIndex, run: Run, call: Call) -> list[int]:
    """Lists the inputs that need a gradient and got None.

    A returned value belongs to an argument, which may be no tensor. An input is listed if its value is None wherever
    the other arguments are; failing that, if it is a leaf whose `.grad` stayed None.
    """
    wanted = inputs_needing_gradient(facts, call)
    positions = _possible_positions(facts, run, call)
    certain = [number for number in wanted if number in positions]
    certain = [n for n in certain if all(run.values[position].type == "NoneType" for position in positions[n])]
    nothing = sum(value.type == "NoneType" for value in run.values)
    plain = len(run.values) - len(call.inputs)  # arguments that are no tensors
    unneeded = sum(access.tensor not in wanted for access in call.inputs)
    if certain or nothing <= plain + unneeded:
        return certain
    leaves = [n for n in wanted if (state := facts.state(n, call.index)) is not None and state.is_leaf]
    return [number for number in leaves if gradient_of(facts, number, run.index) is None]


def _possible_positions(facts: TraceIndex, run: Run, call: Call) -> dict[int, set[int]]:
    """Maps each tensor that was an argument to its possible places among the arguments.

    The tensors keep their order, and only a tensor gets a value that is not None. The result is empty if there are too
    many possibilities.
    """
    nested = _nested(facts, call)
    tensors = [access.tensor for access in call.inputs if access.tensor not in nested]
    count, size = len(run.values), len(tensors)
    if not size or size > count or comb(count, size) > _MAX_ORDERS:
        return {}
    given = {position for position, value in enumerate(run.values) if value.type != "NoneType"}
    orders = [order for order in combinations(range(count), size) if given.issubset(order)]
    possible: dict[int, set[int]] = {number: set() for number in tensors} if orders else {}
    for order in orders:
        for number, position in zip(tensors, order, strict=True):
            possible[number].add(position)
    return possible


def _nested(facts: TraceIndex, call: Call) -> set[int]:
    """Returns the inputs of a call inside a list, tuple or dict, which autograd does not see."""
    return {n for note in facts.trace.inspection.nested if note.index == call.index + 1 for n in note.tensors}
