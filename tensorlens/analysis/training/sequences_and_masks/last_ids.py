"""Finds out whether an id ends each sequence of a program and has no effect but as a target.

The program does not join sequences to a stream and chooses no tokens by what a model gives, and the targets are rows of
several lengths, shifted by one place.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensorlens.analysis.code_around import parent_of, scope_around
from tensorlens.analysis.lineage import ancestry
from tensorlens.analysis.naming.syntax import last_name
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.sequences_and_masks.sequence_ends import behind, id_name
from tensorlens.records.model import Call

_STREAMS = frozenset("append extend insert chain from_iterable sum full full_like new_full repeat fill_".split())
_JOINING = frozenset(("chain", "from_iterable", "extend"))
_CHOOSING = frozenset("argmax topk multinomial sample choices max generate argsort sort kthvalue".split())
_ROWS = frozenset(("pad_sequence", "pad"))
_MAX_CALLS = 2_000


def is_put_last(facts: TraceIndex, ends: set[str]) -> bool:
    """Returns whether the program puts an id only behind all others of a sequence, and joins no sequences."""
    places, between = list(behind(facts, ends)), any(_is_between(facts, ends))
    is_joined = any(_joins(node) for _, tree in facts.trees() for node in ast.walk(tree)) or _adds_to_lists(facts)
    return bool(places) and not (is_joined or between) and all(_is_last(facts, *each) for each in places)


def _is_between(facts: TraceIndex, ends: set[str]) -> Iterator[bool]:
    for _, tree in facts.trees():
        for node in ast.walk(tree):
            items = node.elts[:-1] if isinstance(node, ast.List) else []
            yield any(id_name(each) in ends for each in items if not isinstance(each, ast.Constant))


def _is_last(facts: TraceIndex, file: str, node: ast.AST) -> bool:
    child = node
    while (parent := parent_of(facts, file, child)) is not None and not isinstance(parent, ast.stmt):
        is_ahead = isinstance(parent, ast.List | ast.Tuple) and child is not parent.elts[-1]
        is_ahead |= isinstance(parent, ast.BinOp) and isinstance(parent.op, ast.Add) and child is parent.left
        if is_ahead or isinstance(parent, ast.comprehension):
            return False
        if isinstance(parent, ast.Call) and child is not parent.func and last_name(parent.func) in _STREAMS:
            return False
        child = parent
    return not isinstance(parent, ast.AugAssign | ast.For)


def _joins(node: ast.AST) -> bool:
    """Returns whether an expression or a loop makes one sequence of several."""
    if isinstance(node, ast.ListComp | ast.GeneratorExp):
        return len(node.generators) > 1 and ast.dump(node.elt) == ast.dump(_loaded(node.generators[-1].target))
    if isinstance(node, ast.For):
        calls = [each for one in node.body for each in ast.walk(one) if isinstance(each, ast.Call)]
        added = [each.args[0] for each in calls if last_name(each.func) == "append" and each.args]
        return any(ast.dump(each) == ast.dump(_loaded(node.target)) for each in added)
    if isinstance(node, ast.Call):
        is_sum = last_name(node.func) == "sum" and any(isinstance(each, ast.List) for each in node.args[1:])
        return is_sum or last_name(node.func) in _JOINING
    return False


def _loaded(target: ast.expr) -> ast.expr:
    return ast.Name(target.id, ast.Load()) if isinstance(target, ast.Name) else target


def _adds_to_lists(facts: TraceIndex) -> bool:
    nodes = [node for _, tree in facts.trees() for node in ast.walk(tree)]
    lists = {
        last_name(target)
        for node in nodes if isinstance(node, ast.Assign) and isinstance(node.value, ast.List | ast.Call)
        and (isinstance(node.value, ast.List) or last_name(node.value.func) == "list")
        for target in node.targets
    }  # fmt: skip
    return any(isinstance(node, ast.AugAssign) and last_name(node.target) in lists for node in nodes)


def chooses_no_tokens(facts: TraceIndex) -> bool:
    """Returns whether the program only compares what it chooses by scores: it writes no sequences with a model."""
    for file, tree in facts.trees():
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and last_name(node.func) in _CHOOSING and not _is_plain(node):
                if not _is_compared(facts, file, node):
                    return False
    return True


def _is_plain(call: ast.Call) -> bool:
    """Returns whether a call is Python's own `max()`, or a method that takes the highest of all values, or a draw of
    `random`."""
    if isinstance(call.func, ast.Name):
        return call.func.id in ("max", "sample", "choices")
    owner = last_name(call.func.value) if isinstance(call.func, ast.Attribute) else ""
    return owner in ("random", "rng") or (last_name(call.func) == "max" and not (call.args or call.keywords))


def _is_compared(facts: TraceIndex, file: str, node: ast.expr) -> bool:
    child: ast.AST = node
    while (parent := parent_of(facts, file, child)) is not None:
        if isinstance(parent, ast.Compare):
            return all(isinstance(each, ast.Eq | ast.NotEq) for each in parent.ops)
        if isinstance(parent, ast.Assign):
            names = [each.id for each in parent.targets if isinstance(each, ast.Name)]
            scope = scope_around(facts, file, parent.lineno)
            uses = [each for each in ast.walk(scope) if isinstance(each, ast.Name) and each.id in names]
            read = [each for each in uses if isinstance(each.ctx, ast.Load)]
            return len(names) == len(parent.targets) and all(_is_compared(facts, file, each) for each in read)
        is_same = isinstance(parent, ast.Attribute) or (isinstance(parent, ast.Subscript) and child is parent.value)
        if isinstance(parent, ast.Call):
            is_same = child is parent.func
            if last_name(parent.func) in ("eq", "ne"):
                return True
        if not is_same:
            return False
        child = parent
    return False


def are_shifted_rows(facts: TraceIndex, loss: Call, target: int) -> bool:
    """Returns whether targets are the ids behind those that the model reads, of rows of several lengths that are filled
    up to one."""
    pairs = list(ancestry(facts, target, loss.index, _MAX_CALLS))
    above, made = {number for number, _ in pairs}, [call for _, call in pairs]
    if not any(_is_shift(facts, call) for call in made) or len(_lengths(facts, made)) < 2:
        return False
    for _, call in ancestry(facts, loss.inputs[0].tensor, loss.index, _MAX_CALLS):
        plain = [each.tensor for each in call.inputs if not facts.requires_grad(each.tensor, call.index - 1)]
        for number in plain if op_name(call) == "embedding" else ():
            read = list(ancestry(facts, number, call.index, _MAX_CALLS))
            is_rows = any(op_name(each) in _ROWS or op_name(each) == "setitem" for _, each in read)
            if is_rows and not any(each in above for each, _ in read):
                return False
    return True


def _is_shift(facts: TraceIndex, call: Call) -> bool:
    node = facts.node_at(call.site) if op_name(call) == "getitem" else None
    if not isinstance(node, ast.Subscript):
        return False
    part = node.slice.elts[-1] if isinstance(node.slice, ast.Tuple) and node.slice.elts else node.slice
    if not isinstance(part, ast.Slice) or part.upper is not None:
        return False
    return isinstance(part.lower, ast.Constant) and part.lower.value == 1


def _lengths(facts: TraceIndex, made: list[Call]) -> set[int]:
    """Returns the lengths of the rows that are put together, or are set at the beginning of rows of a tensor."""
    rows: list[int] = []
    for call in made:
        inputs = [each.tensor for each in call.inputs]
        if op_name(call) in _ROWS:
            rows += inputs
        elif op_name(call) == "setitem" and len(inputs) > 1 and _is_from_start(facts, call):
            rows += inputs[1:]
    shapes = [facts.tensor(each).shape for each in rows if facts.tensor(each).dtype != "bool"]
    return {shape[0] for shape in shapes if len(shape) == 1}


def _is_from_start(facts: TraceIndex, call: Call) -> bool:
    node = facts.node_at(call.site)
    targets = node.targets if isinstance(node, ast.Assign) else [node]
    places = [each.slice for each in targets if isinstance(each, ast.Subscript)]
    parts = [each.elts[-1] if isinstance(each, ast.Tuple) and each.elts else each for each in places]
    return bool(parts) and all(isinstance(each, ast.Slice) and each.lower is None for each in parts)
