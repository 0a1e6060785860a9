"""Decides from the syntax whether a number that a call takes out of torch is only printed, logged or kept in a list."""

from __future__ import annotations

import ast
from functools import lru_cache

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.records.model import Call

_KEEPING = ("append", "extend")
_MAKING = ("tensor", "as_tensor", "asarray", "from_numpy", "FloatTensor", "Tensor", "array")
_Parents = dict[ast.AST, ast.AST]
_SHOWING = frozenset(
    "print write info debug warning log log_metrics add_scalar update set_postfix set_description format "
    "round str".split()
)


def is_only_shown(facts: TraceIndex, call: Call) -> bool:
    """Returns whether all that becomes of a call's number is a text, an argument of a function such as `print()`, or an
    item of a list; also if it gets a name or is added to one first."""
    shown = _shown_sites(facts)
    if call.site not in shown:
        span = facts.span(call.site)
        node = None if span is None else facts.names.syntax.node(span)
        is_shown = span is not None and node is not None and _is_shown(node, *_parents(facts, span.file), depth=2)
        shown[call.site] = is_shown
    return shown[call.site]


@lru_cache(maxsize=1)
def _shown_sites(facts: TraceIndex) -> dict[int, bool]:
    """Returns the answers for each site of a trace that were found so far."""
    return {}


@lru_cache(maxsize=2)
def _parents(facts: TraceIndex, file: str) -> tuple[_Parents, ast.AST]:
    """Returns the parent of each node of a file, and the file's tree."""
    tree = facts.tree(file)
    return {child: parent for parent in ast.walk(tree) for child in ast.iter_child_nodes(parent)}, tree


def _is_shown(node: ast.AST, parents: _Parents, tree: ast.AST, depth: int) -> bool:
    number = node
    while (parent := parents.get(node)) is not None:
        if isinstance(parent, ast.JoinedStr):
            return True
        if isinstance(parent, ast.Call) and node is not parent.func:
            name = parent.func.attr if isinstance(parent.func, ast.Attribute) else getattr(parent.func, "id", "")
            if name in _SHOWING or (name in _KEEPING and not _is_made_a_tensor(parent.func, tree)):
                return True
        if isinstance(parent, ast.Compare) or (isinstance(parent, ast.Expr) and node is number):
            return True
        if isinstance(parent, ast.stmt):
            return depth > 0 and _is_assigned_to_shown(parent, parents, tree, depth)
        node = parent
    return False


def _is_made_a_tensor(method: ast.expr, tree: ast.AST) -> bool:
    """Returns whether a call makes a tensor of the list that a number is appended to."""
    kept = ast.unparse(method.value) if isinstance(method, ast.Attribute) else ""
    calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute))
    making = (call for call in calls if isinstance(call.func, ast.Attribute) and call.func.attr in _MAKING)
    return any(ast.unparse(part) == kept for call in making for each in call.args for part in ast.walk(each)
               if isinstance(part, ast.expr))  # fmt: skip


def _is_assigned_to_shown(statement: ast.stmt, parents: _Parents, tree: ast.AST, depth: int) -> bool:
    """Returns whether a statement gives the number to a name, all of whose uses only show it."""
    if not isinstance(statement, ast.Assign | ast.AugAssign):
        return False
    targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
    names = {target.id for target in targets if isinstance(target, ast.Name)}
    if len(names) != len(targets):
        return False
    uses = [node for node in ast.walk(tree) if isinstance(node, ast.Name) and node.id in names]
    return all(_is_shown(use, parents, tree, depth - 1) for use in uses if isinstance(use.ctx, ast.Load))
