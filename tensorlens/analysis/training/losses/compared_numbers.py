"""Finds comparisons of two numbers by which a script takes the less of them: `a if a < b else b`, `min(a, b)`."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import islice
from math import prod

from tensorlens.analysis.code_around import parent_of
from tensorlens.analysis.lineage import ancestry
from tensorlens.analysis.naming.syntax import called_name
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.loss_calls import is_arithmetic
from tensorlens.records.model import Backward, Call

_LESS, _GREATER = frozenset(("lt", "le", "less")), frozenset(("gt", "ge", "greater"))
_READS = frozenset(("item", "float"))
_REARRANGING = frozenset("flip roll cat stack neg index_select getitem take_along_dim gather movedim swapaxes".split())
_RESHAPES = frozenset("flatten view reshape".split())
_GRIDS = frozenset("linspace arange meshgrid cartesian_prod affine_grid".split())
_OF_GRIDS = frozenset("stack cat mul rmul add sub div truediv unsqueeze expand permute transpose t float to".split())
_MAX_STEPS = 4
_Pair = tuple[int, int]


def lesser_of(facts: TraceIndex, where: Call) -> _Pair | None:
    """Returns the two numbers that `torch.where(a < b, a, b)` takes the less of."""
    if len(where.inputs) != 3:
        return None
    condition, *taken = (access.tensor for access in where.inputs)
    made = next(iter(facts.producers(condition, where.index)), None)
    if made is None or facts.tensor(condition).shape or op_name(made) not in _LESS | _GREATER:
        return None
    compared = [access.tensor for access in made.inputs]
    is_less = compared == (taken if op_name(made) in _LESS else taken[::-1])
    return (taken[0], taken[1]) if is_less and len(compared) == 2 else None


def lesser_in_source(facts: TraceIndex, backward: Backward) -> Iterator[tuple[Call, _Pair]]:
    """Yields the comparisons since the pass before, and the numbers that they compare, where the source takes the less:
    by an expression with `if`, a condition around an assignment or return, or the built-in `min()`."""
    before = max((each.index for each in facts.backwards if each.index < backward.index), default=-1)
    read: Call | None = None
    for call in facts.calls_between(before, backward.index):
        name, inputs = op_name(call), [access.tensor for access in call.inputs]
        if name in _READS and len(inputs) == 1:
            pair = (read.inputs[0].tensor, inputs[0]) if read is not None else None
            if pair is not None and read is not None and _is_comparison(facts, read, call):
                yield call, pair
            read = call
        elif name in _LESS | _GREATER and len(inputs) == 2 and not any(facts.tensor(each).shape for each in inputs):
            if _takes_less(facts, facts.node_at(call.site), facts.trace.sites[call.site].span.file):
                yield call, (inputs[0], inputs[1])


def _is_comparison(facts: TraceIndex, one: Call, other: Call) -> bool:
    """Returns whether two reads of numbers, as `a.item()`, are the sides of a comparison that the less is taken by."""
    file = facts.trace.sites[one.site].span.file
    nodes = [facts.node_at(call.site) for call in (one, other)]
    above = [parent_of(facts, file, node) if node is not None else None for node in nodes]
    return isinstance(above[0], ast.Compare) and above[0] is above[1] and _takes_less(facts, above[0], file)


def _takes_less(facts: TraceIndex, node: ast.AST | None, file: str) -> bool:
    if isinstance(node, ast.Call):
        return called_name(node) == "min"
    if not isinstance(node, ast.Compare) or len(node.ops) != 1:
        return False
    sides = [node.left, node.comparators[0]]
    if isinstance(node.ops[0], ast.Gt | ast.GtE):
        sides.reverse()
    elif not isinstance(node.ops[0], ast.Lt | ast.LtE):
        return False
    below: ast.AST = node
    above = parent_of(facts, file, node)
    while isinstance(above, ast.BoolOp):
        below, above = above, parent_of(facts, file, above)
    if isinstance(above, ast.IfExp):
        return above.test is below and _code(above.body) == _code(sides[0])
    if not isinstance(above, ast.If) or above.test is not below:
        return False
    taken = (each.value for each in above.body if isinstance(each, ast.Assign | ast.Return) and each.value is not None)
    return any(_code(value) == _code(sides[0]) for value in taken)


def _code(node: ast.expr) -> str:
    """Returns the code of a value, without a read of its number."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _READS:
        node = node.func.value
    elif isinstance(node, ast.Call) and called_name(node) in _READS and len(node.args) == 1:
        node = node.args[0]
    return ast.unparse(node)


def has_rows_of_samples(facts: TraceIndex, common: list[Call], parts: list[list[Call]]) -> bool:
    """Returns whether two numbers compare one prediction, whose rows are samples, with a target in two arrangements.

    The rows are those of the input of the model, and have several dimensions there or in the prediction: rows that are
    the points of one signal, as coordinates, may ask for one choice. The targets are of one tensor, or the prediction
    itself is arranged in two ways.
    """
    own = [call for part in parts for call in part]
    if not all(_keeps_result(facts, call) for call in own):
        return False
    made = {access.tensor for call in common for access in call.outputs}
    predicted = {access.tensor for call in own for access in call.inputs} & made
    shapes = [facts.tensor(number).shape for number in predicted]
    given = [_given(facts, part, made) for part in parts]
    if not shapes or not all(given) or not given[0] & given[1] or any(len(shape) < 2 for shape in shapes):
        return False
    rows = {shape[0] for shape in shapes}
    inputs = {shape for call in common for shape in _inputs(facts, call) if shape[:1] == shapes[0][:1]}
    return len(rows) == 1 and min(rows) > 1 and bool(inputs) and max(map(len, {*inputs, *shapes})) > 2


def _keeps_result(facts: TraceIndex, call: Call) -> bool:
    """Returns whether a call computes with what it is given alone, by arithmetic or in another order."""
    is_known = is_arithmetic(call) or op_name(call) in _REARRANGING
    return is_known and not any(facts.tensor(access.tensor).type.endswith("Parameter") for access in call.inputs)


def _given(facts: TraceIndex, part: list[Call], made: set[int]) -> set[int]:
    """Returns the targets of a loss, and the tensors of the same number of elements that they were made from."""
    found = set[int]()
    for call in part:
        for access in call.inputs:
            number, before = access.tensor, call.index
            if number in made or len(facts.tensor(number).shape) < 2 or facts.requires_grad(number, before - 1):
                continue
            size = prod(facts.tensor(number).shape)
            for _ in range(_MAX_STEPS):
                if prod(facts.tensor(number).shape) == size:
                    found.add(number)
                source = next(iter(facts.producers(number, before)), None)
                if source is None or not source.inputs:
                    break
                number, before = source.inputs[0].tensor, source.index
    return found


def _inputs(facts: TraceIndex, call: Call) -> Iterator[tuple[int, ...]]:
    """Yields the shapes of the tensors without a graph that a call reads, also before they are flattened."""
    for access in call.inputs:
        number, before = access.tensor, call.index
        if facts.requires_grad(number, before - 1) or _are_coordinates(facts, number, before):
            continue
        yield facts.tensor(number).shape
        source = next(iter(facts.producers(number, before)), None)
        if source is not None and op_name(source) in _RESHAPES and source.inputs:
            yield facts.tensor(source.inputs[0].tensor).shape


def _are_coordinates(facts: TraceIndex, number: int, before: int) -> bool:
    """Returns whether a tensor has the places of one signal, as a grid of equal steps, and no data."""
    names = {op_name(made) for _, made in islice(ancestry(facts, number, before), _MAX_STEPS * _MAX_STEPS)}
    return bool(names & _GRIDS) and names <= _GRIDS | _RESHAPES | _OF_GRIDS
