"""Finds optimizers of the program whose `step()` takes the learning rate from elsewhere than its groups."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from tensorlens.analysis.code_around import method_of
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.records.model import Span

_GROUPS, _DEFAULTS, _RATE = "param_groups", "defaults", "lr"
_PASSING = frozenset(("enumerate", "zip", "len", "reversed", "iter", "list"))
_MAKING = frozenset(("__init__", "__setstate__", "__repr__", "__str__"))
_SIMPLE = (ast.FunctionDef, ast.Expr, ast.Assign, ast.AnnAssign)


@dataclass(frozen=True, slots=True)
class RateElsewhere:
    """A place where a class reads its learning rate, while no method reads that of a group."""

    span: Span
    code: str  # `self.defaults["lr"]`


def rate_elsewhere(facts: TraceIndex, name: str) -> RateElsewhere | None:
    """Returns where the class of an optimizer reads its learning rate; None if a method may read it of a group."""
    found = [
        (file, node)
        for file, tree in facts.trees()
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef) and node.name in (name, "Optimizer")
    ]
    if len(found) != 1 or found[0][1].name != name:
        return None
    file, holder = found[0]
    methods = [each for each in holder.body if isinstance(each, ast.FunctionDef) and each.name not in _MAKING]
    others = (each for each in holder.body if not isinstance(each, _SIMPLE))
    is_own = len(holder.bases) == 1 and _last(holder.bases[0]) == "Optimizer" and method_of(holder, "step") is not None
    if not is_own or any(others) or any(_may_read_groups(each) for each in methods):
        return None
    kept = _kept_rates(facts, holder)
    reads = [node for method in methods for node in ast.walk(method) if _is_default(node) or _is_kept(node, kept)]
    if not reads or _writes_defaults(facts):
        return None
    return RateElsewhere(facts.span_of(reads[0], file), facts.code_of(reads[0], file))


def _may_read_groups(method: ast.FunctionDef) -> bool:
    """Returns whether a method may read the rate of a group: by its name, by a variable, or in another function."""
    parents = {child: node for node in ast.walk(method) for child in ast.iter_child_nodes(node)}
    groups = set(_group_names(method))
    for node in ast.walk(method):
        parent = parents.get(node)
        if isinstance(node, ast.Constant) and node.value == _RATE:
            if parent is None or not _is_default(parent):
                return True
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in groups:
            if not _is_other_option(node, parent, parents):
                return True
        elif isinstance(node, ast.Name) and node.id in ("self", "super", "vars", "getattr", "locals"):
            if node.id != "self" or not isinstance(parent, ast.Attribute):
                return True
        elif isinstance(node, ast.Attribute) and node.attr in (_GROUPS, _DEFAULTS) and not _is_plain(node, parent):
            return True
    return False


def _group_names(method: ast.FunctionDef) -> Iterator[str]:
    """Yields the variables of a method that may be a group: those of loops over the groups, and those set to one."""
    for node in ast.walk(method):
        if isinstance(node, ast.For | ast.comprehension):
            source, targets = node.iter, [node.target]
        elif isinstance(node, ast.Assign):
            source, targets = node.value, node.targets
        else:
            continue
        is_params = isinstance(source, ast.Subscript) and isinstance(source.slice, ast.Constant)
        if not (is_params and source.slice.value == "params") and _mentions(source, _GROUPS):  # type: ignore[attr-defined]
            yield from (each.id for target in targets for each in ast.walk(target) if isinstance(each, ast.Name))


def _is_other_option(node: ast.Name, parent: ast.AST | None, parents: dict[ast.AST, ast.AST]) -> bool:
    """Returns whether a group is only asked for an option by a text, which is not the rate, or for its parameters."""
    if isinstance(parent, ast.Subscript) and parent.value is node:
        return isinstance(parent.slice, ast.Constant)
    call = parents.get(parent) if isinstance(parent, ast.Attribute) and parent.attr in ("get", "setdefault") else None
    return isinstance(call, ast.Call) and bool(call.args) and isinstance(call.args[0], ast.Constant)


def _is_plain(node: ast.Attribute, parent: ast.AST | None) -> bool:
    """Returns whether `self.param_groups` is gone through or indexed, or `self.defaults` is read at a text."""
    if node.attr == _DEFAULTS:
        is_item = isinstance(parent, ast.Subscript) and isinstance(parent.slice, ast.Constant)
        return is_item or (isinstance(parent, ast.Attribute) and parent.attr == "get")
    if isinstance(parent, ast.Call):
        return _last(parent.func) in _PASSING
    return isinstance(parent, ast.For | ast.comprehension | ast.Subscript)


def _is_default(node: ast.AST) -> bool:
    """Returns whether a node is `self.defaults["lr"]` or `self.defaults.get("lr")`."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "get" and node.args:
        held, key = node.func.value, node.args[0]
    elif isinstance(node, ast.Subscript):
        held, key = node.value, node.slice
    else:
        return False
    return _last(held) == _DEFAULTS and isinstance(key, ast.Constant) and key.value == _RATE


def _kept_rates(facts: TraceIndex, holder: ast.ClassDef) -> set[str]:
    """Returns the attributes that `__init__` sets to its argument `lr`, and that no other line of the program sets."""
    making = method_of(holder, "__init__")
    kept = {
        target.attr
        for node in (ast.walk(making) if making is not None else ())
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Name) and node.value.id == _RATE
        for target in node.targets
        if isinstance(target, ast.Attribute) and _last(target.value) == "self"
    }
    nodes = (node for _, tree in facts.trees() for node in ast.walk(tree) if isinstance(node, ast.Attribute))
    stored = [node.attr for node in nodes if not isinstance(node.ctx, ast.Load)]
    return {name for name in kept if stored.count(name) == 1 and method_of(holder, name) is None}


def _is_kept(node: ast.AST, kept: set[str]) -> bool:
    return isinstance(node, ast.Attribute) and node.attr in kept and _last(node.value) == "self"


def _writes_defaults(facts: TraceIndex) -> bool:
    """Returns whether a line of the program may change the defaults of an optimizer."""
    for node in (node for _, tree in facts.trees() for node in ast.walk(tree)):
        if isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load) and _last(node.value) == _DEFAULTS:
            return True
        if isinstance(node, ast.Attribute) and node.attr == "update" and _last(node.value) == _DEFAULTS:
            return True
    return False


def _mentions(node: ast.AST, name: str) -> bool:
    return any(isinstance(each, ast.Attribute) and each.attr == name for each in ast.walk(node))


def _last(node: ast.AST) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
