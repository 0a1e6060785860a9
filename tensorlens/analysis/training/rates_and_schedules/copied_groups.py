"""Finds lines that set an option in a copy of an optimizer's groups, as `state_dict()` returns one."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from tensorlens.analysis.code_around import parent_of, scope_around, statement_around
from tensorlens.analysis.naming.syntax import called_name, last_name
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.records.model import Span

_GROUPS = "param_groups"
_LOOKS = frozenset(("enumerate", "zip", "reversed", "iter", "next", "len", "list"))
"""Functions whose results hold what they are given at most until a loop has ended."""
_SHOWING = frozenset("print info debug write".split())
_MOST = 5  # names that are followed for one group


@dataclass(frozen=True, slots=True)
class CopiedOption:
    """A line that sets an option of a group in a copy that nothing else uses."""

    span: Span
    code: str  # `group["lr"]`
    copy: str  # `optimizer.state_dict()`
    option: str  # "lr"


def copied_options(facts: TraceIndex) -> Iterator[CopiedOption]:
    """Yields these lines, but for those whose function reads the option of the copy as well."""
    own = (node for _, tree in facts.trees() for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))
    if any(each.name in ("state_dict", "__deepcopy__") for each in own):
        return  # a method of the program may return the groups themselves
    for file, tree in facts.trees():
        for node in ast.walk(tree):
            if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
                group, option = node.value, _text(node.slice)
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "update":
                group, option = node.func.value, next((each.arg for each in node.keywords if each.arg), "")
            else:
                continue
            copied = _copy_of(facts, file, group, 0) if option not in ("", "params") else None
            if copied is not None and not _is_text(facts, file, node) and not _is_read(facts, file, node, option):
                code = facts.code_of(node, file)
                yield CopiedOption(facts.span_of(node, file), code, facts.code_of(copied, file), option)


def _copy_of(facts: TraceIndex, file: str, group: ast.expr, seen: int) -> ast.expr | None:
    """Returns the call that makes the copy which an expression is a group of."""
    if isinstance(group, ast.Subscript):
        return _copied_list(facts, file, group.value, seen)
    if isinstance(group, ast.Call) and last_name(group.func) == "next" and group.args:
        inner = group.args[0]
        is_iterator = isinstance(inner, ast.Call) and last_name(inner.func) == "iter" and len(inner.args) == 1
        return _copied_list(facts, file, inner.args[0], seen) if is_iterator else None  # type: ignore[attr-defined]
    bound = _only_binding(facts, file, group) if seen < _MOST else None
    if bound is None:
        return None
    value, is_loop = bound
    if not is_loop:
        return _copy_of(facts, file, value, seen + 1)
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id in _LOOKS:
        found = [each for part in value.args if (each := _copied_list(facts, file, part, seen)) is not None]
        return found[0] if len(found) == 1 else None
    return _copied_list(facts, file, value, seen)


def _copied_list(facts: TraceIndex, file: str, node: ast.expr, seen: int) -> ast.expr | None:
    """Returns the call that makes the copy whose groups an expression lists."""
    if isinstance(node, ast.Subscript) and _text(node.slice) == _GROUPS:
        held = node.value
        bound = _only_binding(facts, file, held)
        made = held if bound is None or bound[1] else bound[0]
        is_state = isinstance(made, ast.Call) and last_name(made.func) == "state_dict" and not made.args
        return made if is_state else None
    if isinstance(node, ast.Call) and last_name(node.func) == "deepcopy" and len(node.args) == 1:
        return node if last_name(node.args[0]) == _GROUPS else None
    bound = _only_binding(facts, file, node) if seen < _MOST else None
    return None if bound is None or bound[1] else _copied_list(facts, file, bound[0], seen + 1)


def _only_binding(facts: TraceIndex, file: str, node: ast.expr) -> tuple[ast.expr, bool] | None:
    """Returns the value of a variable, and whether a loop goes through it, if one place binds it, and no line gives it
    to anything that may keep it."""
    if not isinstance(node, ast.Name):
        return None
    scope = scope_around(facts, file, node.lineno)
    names = [each for each in ast.walk(scope) if isinstance(each, ast.Name) and each.id == node.id]
    stored = [each for each in names if isinstance(each.ctx, ast.Store)]
    if len(stored) != 1 or not _name_only_looks(facts, file, stored[0], 0):
        return None
    statement = statement_around(facts, facts.span_of(stored[0], file))
    if isinstance(statement, ast.For) and any(each is stored[0] for each in ast.walk(statement.target)):
        return statement.iter, True
    is_plain = isinstance(statement, ast.Assign) and statement.targets == stored
    return (statement.value, False) if is_plain else None  # type: ignore[union-attr]


def _is_shared(facts: TraceIndex, name: str) -> bool:
    """Returns whether a function reads a variable of the top level, or may do so."""
    functions = (each for _, tree in facts.trees() for each in ast.walk(tree) if isinstance(each, ast.FunctionDef))
    return any(isinstance(node, ast.Name) and node.id == name for each in functions for node in ast.walk(each))


def _name_only_looks(facts: TraceIndex, file: str, stored: ast.expr, seen: int) -> bool:
    """Returns whether all lines that read a variable only look at it; False for an argument or a shared one."""
    if not isinstance(stored, ast.Name) or seen >= _MOST:
        return False
    scope = scope_around(facts, file, stored.lineno)
    arguments = [each.arg for each in ast.walk(scope) if isinstance(each, ast.arg)]
    if stored.id in arguments or (isinstance(scope, ast.Module) and _is_shared(facts, stored.id)):
        return False
    names = [each for each in ast.walk(scope) if isinstance(each, ast.Name) and each.id == stored.id]
    return all(_only_looks(facts, file, each, seen) for each in names if isinstance(each.ctx, ast.Load))


def _only_looks(facts: TraceIndex, file: str, node: ast.expr, seen: int) -> bool:
    """Returns whether an expression is only indexed or gone through, and nothing keeps it or what it holds."""
    parent = parent_of(facts, file, node)
    if isinstance(parent, ast.Subscript):
        is_option = _text(parent.slice) not in ("", _GROUPS)
        return parent.value is node and (is_option or _only_looks(facts, file, parent, seen))
    if isinstance(parent, ast.Assign) and len(parent.targets) == 1:
        return parent.value is node and _name_only_looks(facts, file, parent.targets[0], seen + 1)
    if isinstance(parent, ast.For) and parent.iter is node:
        target = parent.target
        if isinstance(node, ast.Call) and last_name(node.func) == "enumerate" and isinstance(target, ast.Tuple):
            target = target.elts[-1]
        targets = target.elts if isinstance(target, ast.Tuple) else [target]
        return all(_name_only_looks(facts, file, each, seen + 1) for each in targets)
    if isinstance(parent, ast.Attribute):
        return parent.attr == "update"
    if not isinstance(parent, ast.Call) or last_name(parent.func) not in _LOOKS:
        return False
    return last_name(parent.func) == "len" or _only_looks(facts, file, parent, seen)


def _is_text(facts: TraceIndex, file: str, write: ast.expr) -> bool:
    """Returns whether a line sets an option to a text, as to show it."""
    statement = statement_around(facts, facts.span_of(write, file))
    value = statement.value if isinstance(statement, ast.Assign) else None
    return isinstance(value, ast.JoinedStr) or (value is not None and _text(value) != "")


def _is_read(facts: TraceIndex, file: str, write: ast.expr, option: str) -> bool:
    """Returns whether the function of a write reads such an option elsewhere than in that statement, or shows the
    group, as after its values are rounded."""
    own = statement_around(facts, facts.span_of(write, file))
    inside = set(ast.walk(own)) if own is not None else set()
    group = write.value if isinstance(write, ast.Subscript) else None
    for node in ast.walk(scope_around(facts, file, write.lineno)):
        if node not in inside and isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
            if _text(node.slice) == option:
                return True
        if called_name(node) in _SHOWING and isinstance(group, ast.Name) and group.id in map(last_name, ast.walk(node)):
            return True
    return False


def _text(node: ast.expr) -> str:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""
