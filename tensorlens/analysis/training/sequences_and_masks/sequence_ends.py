"""Finds out whether a program puts an id behind the ids of its sequences, and looks for it in what a model gives."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensorlens.analysis.code_around import parent_of
from tensorlens.analysis.lineage import ancestry
from tensorlens.analysis.naming.syntax import last_name
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.records.model import Call

_MAKING = frozenset("tensor as_tensor LongTensor full full_like new_full new_tensor array repeat".split())
_ADDING = frozenset("append extend insert fill_ index_fill_ masked_fill masked_fill_ scatter scatter_ pad".split())
_JOINING = frozenset(("chain", "append"))
_SEARCHING = frozenset("index eq ne find count".split())
_COMPARING = frozenset(("eq", "ne"))
_FINDING = ast.Eq | ast.NotEq | ast.In | ast.NotIn
_CHOOSING = ast.Compare | ast.For | ast.comprehension
_AROUND = (  # these leave a value at its place
    ast.Starred | ast.keyword | ast.IfExp | ast.Attribute | ast.Subscript | ast.List | ast.Tuple | ast.BinOp | ast.Call
)
_MAX_CALLS = 300  # from a comparison to a parameter of the model


def id_name(node: ast.AST | None) -> str:
    """Returns "eos" for `eos`, `self.eos`, `ids["<eos>"]` and the key `"<eos>"`."""
    if isinstance(node, ast.Subscript):
        node = node.slice
    if isinstance(node, ast.Constant):
        return node.value.strip("<>[]|") if isinstance(node.value, str) else ""
    return last_name(node) if isinstance(node, ast.Name | ast.Attribute) else ""


def is_put_behind(facts: TraceIndex, ends: set[str]) -> bool:
    """Returns whether the program puts an id into sequences, not only as their first."""
    return any(behind(facts, ends))


def behind(facts: TraceIndex, ends: set[str]) -> Iterator[tuple[str, ast.AST]]:
    """Yields the places where the program does so, each with its file."""
    nodes = ((file, node) for file, tree in facts.trees() for node in ast.walk(tree) if id_name(node) in ends)
    yield from ((file, node) for file, node in nodes if _is_behind(facts, file, node))


def _is_behind(facts: TraceIndex, file: str, node: ast.AST) -> bool:
    child, made = node, False
    while (parent := parent_of(facts, file, child)) is not None:
        if isinstance(parent, ast.Assign):
            return child is parent.value and _is_assigned(facts, file, parent, made)
        if isinstance(parent, ast.List | ast.Tuple) and (len(parent.elts) > 1 or not isinstance(parent.ctx, ast.Load)):
            return _is_later(parent, child, made, parent_of(facts, file, parent))
        if isinstance(parent, ast.BinOp) and isinstance(parent.op, ast.Add):
            return made and child is parent.right
        if isinstance(parent, ast.AugAssign):
            return made and isinstance(parent.op, ast.Add)
        if isinstance(parent, ast.Call) and child is not parent.func:
            name = last_name(parent.func)
            if name in _ADDING or name in _JOINING:
                return not _is_in_front(parent, child)
            if name not in _MAKING:
                return False
        elif (isinstance(parent, ast.Subscript) and child is not parent.value) or not isinstance(parent, _AROUND):
            return False
        made |= isinstance(parent, ast.List | ast.Tuple | ast.Call)
        child = parent
    return False


def _is_later(items: ast.List | ast.Tuple, item: ast.AST, made: bool, around: ast.AST | None) -> bool:
    """Returns whether an item comes behind others of a sequence; a list of ids alone may be one to choose from."""
    if item is items.elts[0] or not isinstance(items.ctx, ast.Load) or isinstance(around, _CHOOSING):
        return False
    is_sequence = isinstance(items, ast.List) and isinstance(around, ast.Call | ast.List)
    return made or is_sequence or any(isinstance(each, ast.Starred) for each in items.elts)


def _is_in_front(call: ast.Call, given: ast.AST) -> bool:
    """Returns whether a call puts a value at the first place of a sequence."""
    name, first = last_name(call.func), next(iter(call.args), None)
    if name == "insert":
        return isinstance(first, ast.Constant) and first.value == 0
    if name == "pad":
        sides = [each for each in call.args[1:2] if isinstance(each, ast.Tuple | ast.List)]
        return any(written == 0 for each in sides for written in map(_constant, each.elts[1:2]))
    return name in _JOINING and given is first and len(call.args) > 1


def _constant(node: ast.expr) -> object:
    return node.value if isinstance(node, ast.Constant) else None


def _is_assigned(facts: TraceIndex, file: str, statement: ast.Assign, made: bool) -> bool:
    """Returns whether items are set to an id, not only the first of each row, or to sequences of it whose name is put
    behind others, or whose other items are set."""
    places = [each.slice for each in statement.targets if isinstance(each, ast.Subscript) and not id_name(each)]
    last = [each.elts[-1] if isinstance(each, ast.Tuple) and each.elts else each for each in places]
    if any(_constant(each) != 0 for each in last):
        return True
    names = {each.id for each in statement.targets if isinstance(each, ast.Name)} if made else set[str]()
    for node in ast.walk(facts.tree(file)):
        if isinstance(node, ast.Name) and node.id in names and isinstance(node.ctx, ast.Load):
            parent = parent_of(facts, file, node)
            is_set = isinstance(parent, ast.Subscript) and isinstance(parent.ctx, ast.Store)
            is_later = isinstance(parent, ast.List | ast.Tuple) and node is not parent.elts[0]
            is_right = isinstance(parent, ast.BinOp) and isinstance(parent.op, ast.Add) and node is parent.right
            if is_set or is_later or is_right:
                return True
    return False


def is_sought(facts: TraceIndex, ends: set[str], others: set[str]) -> bool:
    """Returns whether the program searches for an id, or compares with it. Comparisons of tensors count if a model
    gives these, and no others do with other names of the id."""
    comparisons: dict[object, list[Call]] = {}
    for call in facts.calls:
        if op_name(call) in _COMPARING:
            comparisons.setdefault(facts.span(call.site), []).append(call)
    for names in (ends, others):
        for file, node in _searches(facts, names):
            calls = comparisons.get(facts.span_of(node, file), ())
            if (not calls and names is ends) or any(_is_of_model(facts, call) for call in calls):
                return True
    return False


def _searches(facts: TraceIndex, ends: set[str]) -> Iterator[tuple[str, ast.expr]]:
    for file, tree in facts.trees():
        for node in ast.walk(tree):
            sides: list[ast.expr] = []
            if isinstance(node, ast.Compare) and all(isinstance(each, _FINDING) for each in node.ops):
                sides = [node.left, *node.comparators]
            elif isinstance(node, ast.Call) and last_name(node.func) in _SEARCHING:
                sides = node.args
            if isinstance(node, ast.expr) and any(id_name(each) in ends for each in sides):
                if not isinstance(parent_of(facts, file, node), ast.Assert):
                    yield file, node


def _is_of_model(facts: TraceIndex, comparison: Call) -> bool:
    for access in comparison.inputs:
        for _, made in ancestry(facts, access.tensor, comparison.index, _MAX_CALLS):
            if any(facts.is_leaf_requiring_grad(each.tensor, made.index) for each in made.inputs):
                return True
    return False
