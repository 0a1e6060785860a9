"""Finds gradients whose columns are all differentiated at once, in a loss that uses the result as second derivatives.

`torch.autograd.grad(g.sum(), x)` of a gradient `g` with respect to `x` gives the sums of the rows of the Hessian. A
second run measures whether these are its diagonal: the mixed derivatives of a separable function are zero. Sums may
be meant where the names or comments say so, or where they meet the derivatives of one column of the gradient.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from tensorlens.analysis.trace_index import TraceIndex, index_of
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.gradients.summed_columns import is_of_ones, outputs_at_once, takes_columns
from tensorlens.analysis.training.gradients.sums_meant import is_meant, meets_another
from tensorlens.analysis.training.loss_calls import examined_passes, recorded_above
from tensorlens.journal.child_config import GradientColumns
from tensorlens.records.graph_values import ColumnDerivatives
from tensorlens.records.model import Call, Trace

_GRAD = "autograd.grad"
_MOST_COLUMNS = 16
_NEGLIGIBLE = 1e-3  # of the second derivatives by one column: rounding gives separable functions mixed ones, too


@dataclass(frozen=True, slots=True)
class RowSums:
    """A call that differentiates the sum of the columns of a gradient, and one that uses the result."""

    second: Call
    first: Call  # it made the gradient
    gradient: int
    given: int  # the tensor that both differentiate by
    used: Call  # it adds up the columns of the result, or takes some of them
    roots: tuple[int, int]  # sequence numbers of the nodes that the root of the second call may have


def columns_to_measure(trace: Trace) -> tuple[GradientColumns, ...]:
    """Returns the gradients whose columns a second run differentiates: those of the first and the last examined pass
    of each line."""
    lines: dict[int, list[RowSums]] = defaultdict(list)
    for each in _found(index_of(trace)):
        lines[each.second.site].append(each)
    roots = dict.fromkeys(each.roots for found in lines.values() for each in (found[0], found[-1]))
    return tuple(map(GradientColumns, roots))


def row_sums(facts: TraceIndex) -> Iterator[tuple[RowSums, ColumnDerivatives]]:
    """Yields those whose mixed derivatives are not zero, one for each line, each with what was measured."""
    known, reported = facts.trace.inspection.column_derivatives, set[int]()
    for each in _found(facts) if known else ():
        for fact in known if each.second.site not in reported else ():
            if each.roots[0] <= fact.root < each.roots[1] and _is_mixed(fact, each.used):
                reported.add(each.second.site)
                yield each, fact
                break


def _is_mixed(fact: ColumnDerivatives, used: Call) -> bool:
    """Returns whether what a call uses of the sums holds mixed derivatives: each column, where it takes some."""
    least = _NEGLIGIBLE * max(fact.own)
    are_mixed = [mixed > least for mixed in fact.mixed]
    return any(are_mixed) if op_name(used) == "sum" else all(are_mixed)


def _found(facts: TraceIndex) -> Iterator[RowSums]:
    if not any(backward.create_graph for backward in facts.backwards):
        return
    for backward in examined_passes(facts):
        above = recorded_above(facts, backward)
        for call in above:
            each = _row_sums(facts, call, above) if call.op == _GRAD else None
            if each is not None:
                yield each


def _row_sums(facts: TraceIndex, second: Call, above: tuple[Call, ...]) -> RowSums | None:
    """Returns the facts if a call differentiates all columns of a gradient by the tensor that the gradient is of."""
    gradient = outputs_at_once(facts, second)
    first = None if gradient is None else next(iter(facts.producers(gradient, second.index)), None)
    if gradient is None or first is None or first.op != _GRAD or len(first.outputs) != 1:
        return None
    given, shape = second.inputs[1].tensor, facts.tensor(gradient).shape
    if facts.tensor(given).shape != shape or shape[1] > _MOST_COLUMNS or not _is_gradient(facts, first, given):
        return None
    if any(_adds_columns(facts, each, gradient) for each in above):
        return None  # derivatives along a direction
    uses = [each for each in above if _uses(facts, each, second.outputs[0].tensor)]
    used = next(iter(uses), None)
    if is_meant(facts, second, uses) or meets_another(facts, second, gradient, above):
        return None
    made = first if len(second.inputs) == 3 else next(iter(facts.producers(second.inputs[0].tensor, second.index)))
    is_known = used is not None and made.nodes[0] < made.nodes[1]
    return RowSums(second, first, gradient, given, used, made.nodes) if used is not None and is_known else None


def _is_gradient(facts: TraceIndex, first: Call, given: int) -> bool:
    """Returns whether a call gives the gradient of a sum, or of one number, by `given` alone."""
    inputs = [access.tensor for access in first.inputs]
    if len(inputs) not in (2, 3) or inputs[1] != given:
        return False
    return len(inputs) == 2 or is_of_ones(facts, inputs[2], inputs[0], first)


def _uses(facts: TraceIndex, call: Call, sums: int) -> bool:
    """Returns whether a call adds up the columns, as a Laplacian does, or takes some of them."""
    return takes_columns(facts, call, sums) or _adds_columns(facts, call, sums)


def _adds_columns(facts: TraceIndex, call: Call, number: int) -> bool:
    """Returns whether a call adds up the columns of a tensor in each row."""
    if op_name(call) != "sum" or [access.tensor for access in call.inputs] != [number]:
        return False
    rows = facts.tensor(number).shape[:1]
    return facts.tensor(call.outputs[0].tensor).shape in (rows, (*rows, 1))
