"""Finds derivatives of several columns at once, in a loss that uses the columns one by one.

`torch.autograd.grad(uv, xy, torch.ones_like(uv))` returns the derivatives of `u + v`, also if a line takes the first
column of `uv` for `u` and that of the result for the derivative of `u` by `x`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from tensorlens.analysis.naming.name_words import words_of
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.loss_calls import examined_passes, recorded_above
from tensorlens.analysis.training.value_ranges import is_written_between
from tensorlens.records.model import Access, Call

_GRAD = "autograd.grad"
_ONES = frozenset(("ones_like", "ones", "new_ones"))
_TAKES = frozenset("getitem unbind split chunk select narrow unsafe_chunk tensor_split".split())
_MIXING = frozenset("linear addmm matmul mm".split())
_AFTER = frozenset("add radd mul rmul tanh sigmoid softplus exp sub div truediv".split())
_LINES = frozenset("add radd sub rsub mul rmul div truediv neg squeeze unsqueeze reshape view stack cat".split())
_SHAPED = frozenset("squeeze unsqueeze reshape view".split())
_TOTALS = frozenset(
    "total totals sum summed whole both mass energy pressure potential force forces flux density hamiltonian".split()
)
_MAX_CALLS = 4
_UNKNOWN = -1_000_000


@dataclass(frozen=True, slots=True)
class SummedColumns:
    """A derivative of the sum of the columns of `outputs`, and a call that takes some of the columns."""

    gradient: Call
    outputs: int
    taken: Call


def summed_columns(facts: TraceIndex) -> Iterator[SummedColumns]:
    """Yields these derivatives, one for each line and its caller."""
    reported: set[int] = set()
    for backward in examined_passes(facts):
        above = recorded_above(facts, backward)
        for call in above:
            outputs = outputs_at_once(facts, call) if call.op == _GRAD and call.site not in reported else None
            if outputs is None or not _is_mixed(facts, outputs, call.index) or _is_total(facts, call):
                continue
            takes = [each for each in above if takes_columns(facts, each, outputs)]
            if not takes or not _is_derivative(facts, call, above):
                continue
            if _is_by_column(facts, call, takes, backward.index):
                reported.add(call.site)
                yield SummedColumns(call, outputs, takes[0])


def _is_by_column(facts: TraceIndex, gradient: Call, takes: list[Call], end: int) -> bool:
    """Returns whether a column of the outputs multiplies derivatives and another one meets them in that term, as in the
    residual of an equation, and no other call differentiates a column: derivatives of a sum may be meant beside these,
    or in a term of their own, and those of a total may meet one column or a sum of all."""
    columns = {access.tensor: {place} for call in takes for access, place in _places(facts, call)}
    single, sums = set(columns), set[int]()
    slopes, rows = {access.tensor for access in gradient.outputs}, facts.tensor(gradient.outputs[0].tensor).shape[:1]
    met, is_product = set[int](), False
    for call in facts.calls_between(min(gradient.index, *(each.index for each in takes)), end):
        inputs, results = [access.tensor for access in call.inputs], {access.tensor for access in call.outputs}
        places = set[int]().union(*(columns.get(each, set()) for each in inputs))
        if call.op == _GRAD and not (columns.keys() | sums).isdisjoint(inputs):
            return False
        is_slope = not slopes.isdisjoint(inputs)
        met |= places if is_slope else set()
        is_product = is_product or (is_slope and op_name(call) in ("mul", "rmul") and not single.isdisjoint(inputs))
        sums |= results if places and op_name(call) == "sum" else set()
        single |= results if op_name(call) in _SHAPED and not single.isdisjoint(inputs) else set()
        is_square = op_name(call) == "mul" and len(inputs) == 2 and inputs[0] == inputs[1]
        is_kept = op_name(call) in _LINES | _TAKES and bool(results) and not is_square
        if is_kept and facts.tensor(min(results)).shape[:1] == rows:
            columns |= {each: columns.get(each, set()) | places for each in results} if places else {}
            slopes |= results if is_slope else set()
    return is_product and len(met - {_UNKNOWN}) > 1


def _places(facts: TraceIndex, call: Call) -> Iterator[tuple[Access, int]]:
    """Yields the parts that a call takes of the outputs, each with its first column."""
    if len(call.outputs) > 1:
        yield from ((access, place) for place, access in enumerate(call.outputs))
        return
    node = facts.node_at(call.site)
    index = node.slice if isinstance(node, ast.Subscript) else None
    first: ast.expr | None = index.elts[-1] if isinstance(index, ast.Tuple) else None
    if isinstance(first, ast.Slice):
        first = first.lower or ast.Constant(0)
    try:
        value = _UNKNOWN if first is None else ast.literal_eval(first)
    except ValueError:
        value = _UNKNOWN
    place = value if isinstance(value, int) else _UNKNOWN
    width = facts.tensor(call.inputs[0].tensor).shape[-1]
    yield call.outputs[0], place + width if _UNKNOWN < place < 0 else place


def _is_total(facts: TraceIndex, gradient: Call) -> bool:
    """Returns whether the names around a call speak of a sum."""
    sites = [facts.trace.sites[each] for each in facts.call_chain(gradient.site)]
    names = [name for site in sites for name in (site.function, *site.targets)]
    return any(word in _TOTALS for name in names for word in words_of(name))


def outputs_at_once(facts: TraceIndex, gradient: Call) -> int | None:
    """Returns the outputs of two or more columns that a call differentiates by one tensor of data, all at once."""
    inputs = [access.tensor for access in gradient.inputs]
    if len(gradient.outputs) != 1 or len(inputs) not in (2, 3):
        return None
    root, given = inputs[0], inputs[1]
    if facts.tensor(given).type.endswith("Parameter"):
        return None
    if len(inputs) == 3:
        outputs = root if is_of_ones(facts, inputs[2], root, gradient) else None
    else:
        outputs = _summed(facts, root, gradient)
    shape = () if outputs is None else facts.tensor(outputs).shape
    rows = facts.tensor(given).shape[:1]
    return outputs if len(shape) == 2 and shape[1] > 1 and shape[0] > 1 and rows == shape[:1] else None


def is_of_ones(facts: TraceIndex, weights: int, root: int, gradient: Call) -> bool:
    made = next(iter(facts.producers(weights, gradient.index)), None)
    is_whole = facts.tensor(weights).shape == facts.tensor(root).shape
    is_made = made is not None and op_name(made) in _ONES and is_whole
    return made is not None and is_made and not is_written_between(facts, weights, made, gradient.index)


def _summed(facts: TraceIndex, root: int, gradient: Call) -> int | None:
    """Returns the tensor of which a call has added all elements."""
    made = next(iter(facts.producers(root, gradient.index)), None)
    is_sum = made is not None and op_name(made) == "sum" and len(made.inputs) == 1 and not facts.tensor(root).shape
    return made.inputs[0].tensor if made is not None and is_sum else None


def _is_mixed(facts: TraceIndex, outputs: int, before: int) -> bool:
    """Returns whether a layer makes all columns of all inputs, so that each column has a derivative of its own."""
    number = outputs
    for _ in range(_MAX_CALLS):
        made = next(iter(facts.producers(number, before)), None)
        if made is None or not made.inputs:
            return False
        if op_name(made) in _MIXING:
            return True
        if op_name(made) not in _AFTER:
            return False
        number, before = made.inputs[0].tensor, made.index
    return False


def takes_columns(facts: TraceIndex, call: Call, outputs: int) -> bool:
    """Returns whether a call takes some of the columns: its results have all rows, and fewer columns."""
    if op_name(call) not in _TAKES or len(call.inputs) != 1 or call.inputs[0].tensor != outputs:
        return False
    whole, part = facts.tensor(outputs).shape, facts.tensor(call.outputs[0].tensor).shape
    return part[:1] == whole[:1] and (len(part) == 1 or part[-1] < whole[-1])


def _is_derivative(facts: TraceIndex, gradient: Call, above: tuple[Call, ...]) -> bool:
    """Returns whether a result is used by its columns, or has one column only: the norm of it may be a penalty."""
    result, shape = gradient.outputs[0].tensor, facts.tensor(gradient.outputs[0].tensor).shape
    return shape[1:] in ((), (1,)) or any(takes_columns(facts, call, result) for call in above)
