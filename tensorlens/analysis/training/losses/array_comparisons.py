"""Finds comparisons in NumPy of answers (n, 1) of a layer with labels (n,), of which one number is made.

The arrays are results of `numpy()`, also joined from the lists that a loop fills, or arrays whose shape was measured
beside such a call. The source shows the comparison.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from tensorlens.analysis.code_around import block_around, parent_of, scope_around, statement_around
from tensorlens.analysis.lineage import ancestry
from tensorlens.analysis.naming.syntax import called_name
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.losses.paired_answers import layer_of
from tensorlens.analysis.training.pair_tables import shape_of
from tensorlens.records.model import Call, Span

_ARRAYS = frozenset(("numpy", "__array__"))
_ALIKE = frozenset("abs absolute square sqrt round rint sign astype copy exp log float32 float64".split())
_REDUCING = frozenset("mean sum average median".split())
_RANDOM = frozenset("randn rand randn_like rand_like normal uniform randint bernoulli".split())
_MOST_CALLS, _MOST_PARENTS = 400, 12
_NEAR = 2  # events: the call may be followed by a gap
_Scope = ast.FunctionDef | ast.AsyncFunctionDef | ast.Module


@dataclass(frozen=True, slots=True)
class ArrayComparison:
    """A comparison of two names in a function, and the call that gave the answers to NumPy."""

    at: Span
    text: str
    left: Call
    answers: str
    labels: str
    rows: int | None  # None: joined from batches


@dataclass(frozen=True, slots=True)
class _Array:
    """A name for an array, where it gets it, and whether it is joined from batches."""

    name: str
    file: str
    stored: ast.stmt
    is_joined: bool


def array_comparisons(facts: TraceIndex) -> Iterator[ArrayComparison]:
    """Yields these comparisons, one for each line."""
    reported, seen, beside = set[tuple[str, int]](), set[int](), facts.trace.inspection.arrays_beside
    calls = [call for call in facts.calls if op_name(call) in _ARRAYS and len(call.inputs) == 1]
    for place, call in enumerate(calls[:_MOST_CALLS]):
        shape, number = shape_of(facts, call.inputs[0].tensor), call.inputs[0].tensor
        if call.site in seen or len(shape) != 2 or shape[1] != 1 or shape[0] < 2:
            continue
        if layer_of(facts, number, call.index) is None or _is_of_noise(facts, number, call.index):
            continue
        seen.add(call.site)
        array = _name_of(facts, call)
        if array is None:
            continue
        measured = next((each for each in beside if call.index < each.index <= call.index + _NEAR), None)
        rows = dict.fromkeys(measured.names, array.stored) if measured is not None and not array.is_joined else {}
        for other in calls[max(0, place - 4) : place + 5]:
            found = _name_of(facts, other) if shape_of(facts, other.inputs[0].tensor) == shape[:1] else None
            if found is not None and found.file == array.file and found.is_joined is array.is_joined:
                rows[found.name] = found.stored
        for node, labels in _comparisons(facts, array, rows):
            span = facts.span_of(node, array.file)
            if (span.file, span.line) not in reported:
                reported.add((span.file, span.line))
                text = facts.code_of(node, array.file)
                yield ArrayComparison(span, text, call, array.name, labels, None if array.is_joined else shape[0])


def _is_of_noise(facts: TraceIndex, number: int, before: int) -> bool:
    """Returns whether answers are made of numbers that a line draws for them alone: they are samples of a generator."""
    above, drawn = {call.index for _, call in ancestry(facts, number, before, _MOST_CALLS)}, set[int]()
    for each, call in ancestry(facts, number, before, _MOST_CALLS):
        if op_name(call).rstrip("_") in _RANDOM and not facts.tensor(each).type.endswith("Parameter"):
            drawn.add(each)
    uses = [call for call in facts.calls if drawn & {access.tensor for access in call.inputs}]
    return bool(drawn) and all(call.index in above for call in uses)


def _name_of(facts: TraceIndex, call: Call) -> _Array | None:
    """Returns the name that gets what a call makes, or what is joined of the list that it is put into."""
    node, span = facts.node_at(call.site), facts.span(call.site)
    if not isinstance(node, ast.Call) or span is None or called_name(node) not in ("numpy", "array", "asarray"):
        return None
    if called_name(node) != "numpy" and (len(node.args) != 1 or called_name(node.args[0]) in ("list", "tuple")):
        return None
    above = parent_of(facts, span.file, node)
    if isinstance(above, ast.Call) and called_name(above) == "append" and isinstance(above.func, ast.Attribute):
        held = above.func.value
        return _joined(facts, span, held.id) if isinstance(held, ast.Name) else None
    if not isinstance(above, ast.Assign) or len(above.targets) != 1 or not isinstance(above.targets[0], ast.Name):
        return None
    return _Array(above.targets[0].id, span.file, above, False)


def _joined(facts: TraceIndex, span: Span, held: str) -> _Array | None:
    """Returns the name of `np.concatenate(held)`; this may be the name of the list, too."""
    scope = scope_around(facts, span.file, span.line)
    found = [
        each
        for each in _own(scope)
        if isinstance(each, ast.Assign)
        and isinstance(each.value, ast.Call)
        and called_name(each.value) == "concatenate"
        and len(each.value.args) == 1
        and not each.value.keywords
        and isinstance(each.value.args[0], ast.Name)
        and each.value.args[0].id == held
    ]
    if len(found) != 1 or len(found[0].targets) != 1 or not isinstance(found[0].targets[0], ast.Name):
        return None
    return _Array(found[0].targets[0].id, span.file, found[0], True)


def _own(scope: ast.AST) -> Iterator[ast.AST]:
    """Yields the parts of a scope, without those of functions and classes in it."""
    for node in ast.iter_child_nodes(scope):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            yield node
            yield from _own(node)


def _comparisons(facts: TraceIndex, array: _Array, rows: dict[str, ast.stmt]) -> Iterator[tuple[ast.expr, str]]:
    """Yields the comparisons after a name gets answers, in blocks that run each time that it does."""
    scope = scope_around(facts, array.file, array.stored.lineno)
    nodes = list(_own(scope))
    if array.name in rows or any(_compares_itself(node, {array.name, *rows}) for node in nodes):
        return
    blocks = [block_around(facts, array.file, array.stored)]
    above = parent_of(facts, array.file, array.stored)
    while isinstance(above, ast.With):
        blocks.append(block_around(facts, array.file, above))
        above = parent_of(facts, array.file, above)
    for node in nodes:
        sides = _sides(node)
        if sides is None or not isinstance(node, ast.expr) or node.lineno <= (array.stored.end_lineno or 0):
            continue
        names = [_held(side) for side in sides]
        labels = next((name for name in names if name in rows), "")
        if set(names) != {array.name, labels} or not labels:
            continue
        at = statement_around(facts, facts.span_of(node, array.file))
        both = ((array.name, array.stored), (labels, rows[labels]))
        is_same = not any(_changes(nodes, name, stored, node) for name, stored in both)
        if is_same and any(at in block for block in blocks) and _is_reduced(facts, array.file, node, nodes):
            yield node, labels


def _changes(nodes: list[ast.AST], name: str, stored: ast.stmt, until: ast.expr) -> bool:
    """Returns whether another line gives a name or its shape a value between a statement and an expression."""
    for node in nodes:
        line = getattr(node, "lineno", 0)
        if not stored.lineno < line <= until.lineno or line <= (stored.end_lineno or 0):
            continue
        if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store):
            return True
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == name:
            if node.attr in ("shape", "resize"):
                return True
    return False


def _sides(node: ast.AST) -> tuple[ast.expr, ast.expr] | None:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub):
        return node.left, node.right
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and isinstance(node.ops[0], ast.Eq | ast.NotEq):
        return node.left, node.comparators[0]
    return None


def _held(node: ast.expr) -> str:
    """Returns the name of an array that a side has, as it is or element by element; "" if it is another."""
    for _ in range(_MOST_PARENTS):
        if isinstance(node, ast.Name):
            return node.id
        if isinstance(node, ast.Call) and called_name(node) in _ALIKE:
            is_method = isinstance(node.func, ast.Attribute) and called_name(node) in ("astype", "copy", "round")
            is_method = is_method and not (isinstance(node.func.value, ast.Name) and node.func.value.id == "np")  # type: ignore[attr-defined]
            if not is_method and len(node.args) != 1:
                return ""
            node = node.func.value if is_method else node.args[0]  # type: ignore[attr-defined]
        elif isinstance(node, ast.Compare | ast.BinOp) and _is_with_constant(node):
            node = node.left
        else:
            return ""
    return ""


def _is_with_constant(node: ast.Compare | ast.BinOp) -> bool:
    right = node.comparators[0] if isinstance(node, ast.Compare) else node.right
    return isinstance(right, ast.Constant)


def _compares_itself(node: ast.AST, names: set[str]) -> bool:
    """Returns whether rows of an array are compared with all rows of the same one, as an energy distance does."""
    sides = _sides(node)
    if sides is None:
        return False
    roots = [each.value if isinstance(each, ast.Subscript | ast.Attribute) else each for each in sides]
    held = [each.id for each in roots if isinstance(each, ast.Name)]
    return len(held) == 2 and held[0] == held[1] and held[0] in names


def _is_reduced(facts: TraceIndex, file: str, node: ast.expr, nodes: list[ast.AST]) -> bool:
    """Returns whether an expression, or each use of the name that gets it, ends in one number."""
    end, above = _top(facts, file, node)
    if end:
        return True
    if not isinstance(above, ast.Assign) or len(above.targets) != 1 or not isinstance(above.targets[0], ast.Name):
        return False
    name = above.targets[0].id
    uses = [each for each in nodes if isinstance(each, ast.Name) and each.id == name]
    loads = [each for each in uses if isinstance(each.ctx, ast.Load)]
    return bool(loads) and len(uses) == len(loads) + 1 and all(_top(facts, file, each)[0] for each in loads)


def _top(facts: TraceIndex, file: str, node: ast.AST) -> tuple[bool, ast.AST | None]:
    """Returns whether what is computed of an expression by element is reduced to a number, and where it ends."""
    for _ in range(_MOST_PARENTS):
        above = parent_of(facts, file, node)
        if isinstance(above, ast.Attribute) and above.value is node:
            above = parent_of(facts, file, above)
        if isinstance(above, ast.Call):
            is_placed = above.args[:1] == [node] or not any(node is each for each in above.args)
            if called_name(above) in _REDUCING:
                own = above.args[1:] if above.args[:1] == [node] else above.args
                return is_placed and not own and not above.keywords, above
            if called_name(above) not in _ALIKE:
                return False, above
        elif isinstance(above, ast.BinOp):
            if not (isinstance(above.op, ast.Pow | ast.Mult | ast.Div) and isinstance(above.right, ast.Constant)):
                return False, above
        else:
            return False, above
        node = above
    return False, None
