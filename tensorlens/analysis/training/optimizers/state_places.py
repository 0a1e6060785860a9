"""Finds the names by which a program keeps state that a line makes, and the lines that may change it."""

from __future__ import annotations

import ast
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from tensorlens.analysis.code_around import class_around, statement_around
from tensorlens.analysis.naming.syntax import plain_name
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.records.model import Call

_AVERAGING = frozenset("lerp mul rmul add radd sub rsub addcmul addcdiv".split())
_CHANGING = ("update", "setdefault", "pop", "clear", "values", "items", "append", "extend")  # methods of collections
_PLAIN = ("len", "bool", "isinstance", "print")


@dataclass(frozen=True, slots=True)
class StatePlace:
    """The place where a line keeps the zeros that it makes, as the file names it."""

    tree: ast.Module
    statement: ast.Assign | ast.AnnAssign  # that makes them
    own: list[ast.AST]  # the code of the optimizer
    keys: set[str | None]
    loops: list[tuple[ast.expr, ast.expr]]  # the variables of loops, each with the collection that it goes through
    heads: set[ast.AST]  # the calls that such loops go through

    @property
    def aliases(self) -> set[str | None]:
        """The variables that a line gives the state, or a part of it."""
        pairs = [pair for node in self.own if node is not self.statement for pair in assigned_pairs(node)]
        return {_key(t) for t, value in (*pairs, *self.loops) if isinstance(t, ast.Name) and _key(value) in self.keys}

    def may_be_written(self) -> bool:
        """Returns whether a line of the file could change the state: one that never ran, perhaps, as under a
        condition."""
        keys, aliases = self.keys, self.aliases
        targets = [target for target, _ in assigned_pairs(self.statement)]
        collections = {_key(each.value) for each in targets if isinstance(each, ast.Subscript)}
        others = [node for node in self.own if node not in self.heads]
        is_set = any(
            _key(target) in keys
            for node in ast.walk(self.tree)
            if node is not self.statement and node not in self.heads
            for target in (*_targets(node), *_changed(node))
        )
        is_bound = any(
            _key(target) in keys and isinstance(target, ast.Name)
            for node in others
            if node is not self.statement
            for target, _ in assigned_pairs(node)
        )
        is_given = any(_key(each) in keys | collections | aliases for node in others for each in _given(node))
        is_changed = any(_key(each) in aliases | collections for node in others for each in _changed(node))
        return is_set or is_bound or is_given or is_changed


def state_of(facts: TraceIndex, made: Call) -> StatePlace | None:
    """Returns where the line of a call keeps the tensor that it makes; None if it assigns it to nothing."""
    span = facts.span(made.site)
    statement = None if span is None else statement_around(facts, span)
    root = root_of(facts, made.site)
    if span is None or root is None or not isinstance(statement, ast.Assign | ast.AnnAssign):
        return None
    holder = class_around(facts, span.file, span.line) or root
    keys = {_key(target) for target, _ in assigned_pairs(statement)} | _keys_inside(statement.value)
    loops, heads = list[tuple[ast.expr, ast.expr]](), set[ast.AST]()
    for node in ast.walk(holder):
        if isinstance(node, ast.For | ast.comprehension):
            loops += _gone_through(node.target, node.iter, heads)
    return StatePlace(facts.tree(span.file), statement, [*ast.walk(holder)], keys - {None}, loops, heads)


def _keys_inside(value: ast.expr | None) -> set[str | None]:
    """Returns the keys and the attributes by which a dict or an object is given parts of it."""
    keys: set[str | None] = set()
    for node in ast.walk(value) if value is not None else ():
        if isinstance(node, ast.Dict):
            keys |= {repr(each.value) for each in node.keys if isinstance(each, ast.Constant)}
        elif isinstance(node, ast.Call) and not (plain_name(node.func) or "").startswith("torch."):
            given = [each.arg for each in node.keywords if each.arg]
            keys |= {repr(each) for each in given} | {f".{each}" for each in given}
    return keys


def _gone_through(target: ast.expr, source: ast.expr, heads: set[ast.AST]) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Yields the variables of a loop with the collections whose items they are, and notes the calls that give them."""
    name = (plain_name(source.func) or "") if isinstance(source, ast.Call) else ""
    last = source.func.attr if isinstance(source, ast.Call) and isinstance(source.func, ast.Attribute) else name
    parts = _each(target)
    if not isinstance(source, ast.Call):
        yield target, source
        return
    if name == "zip" and len(parts) == len(source.args):
        heads.add(source)
        for part, inner in zip(parts, source.args, strict=True):
            yield from _gone_through(part, inner, heads)
    elif name == "enumerate" and len(parts) == 2 and source.args:
        heads.add(source)
        yield from _gone_through(parts[1], source.args[0], heads)
    elif last in ("items", "values") and isinstance(source.func, ast.Attribute):
        heads.add(source)
        yield parts[-1], source.func.value


def assigned_pairs(node: ast.AST | None) -> list[tuple[ast.expr, ast.expr]]:
    """Returns the targets of an assignment, each with its value."""
    if isinstance(node, ast.AnnAssign) and node.value is not None:
        return [(node.target, node.value)]
    if not isinstance(node, ast.Assign) or len(node.targets) != 1:
        return []
    return list(zip(_each(node.targets[0]), _each(node.value), strict=False))


def _targets(node: ast.AST) -> list[ast.expr]:
    """Returns what a statement assigns to, but for variables."""
    targets = [each for target in node.targets for each in _each(target)] if isinstance(node, ast.Assign) else []
    return [each for each in targets if not isinstance(each, ast.Name)]


def _changed(node: ast.AST) -> list[ast.expr]:
    """Returns what `+=` changes, and what a chain of calls with one in place begins with."""
    if isinstance(node, ast.AugAssign):
        return [node.target]
    root, is_in_place = node, False
    while isinstance(root, ast.Call) and isinstance(root.func, ast.Attribute):
        is_in_place |= root.func.attr.endswith("_") or root.func.attr in _CHANGING
        root = root.func.value
    return [root] if is_in_place and isinstance(root, ast.expr) else []


def _given(node: ast.AST) -> list[ast.AST]:
    """Returns what a node hands to code that may change it: a call, a new list, a `return`."""
    if isinstance(node, ast.List | ast.Set | ast.Dict | ast.ListComp | ast.GeneratorExp | ast.Return | ast.Yield):
        return [*ast.iter_child_nodes(node)]
    if not isinstance(node, ast.Call):
        return []
    name = plain_name(node.func) or ""
    is_pure = name in _PLAIN or (name.startswith("torch.") and not name.endswith("_"))
    is_pure |= isinstance(node.func, ast.Attribute) and node.func.attr.rstrip("_") in _AVERAGING
    if is_pure and all(each.arg != "out" for each in node.keywords):
        return []
    return [*node.args, *(each.value for each in node.keywords)]


def _key(node: ast.AST) -> str | None:
    """Returns the key, the attribute or the variable that an expression reads: "first" of `self.state[p]["first"]`."""
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
        return repr(node.slice.value)
    if isinstance(node, ast.Subscript | ast.Starred):
        return _key(node.value)
    if isinstance(node, ast.Attribute):
        return f".{node.attr}"
    return node.id if isinstance(node, ast.Name) else None


def _each(node: ast.expr) -> list[ast.expr]:
    return node.elts if isinstance(node, ast.Tuple | ast.List) else [node]


def root_of(facts: TraceIndex, site: int) -> ast.AST | None:
    """Returns the outermost function or class around a line, or the whole file."""
    span = facts.span(site)
    if span is None:
        return None
    tree = facts.tree(span.file)
    blocks = _blocks(tree)
    place = bisect_right(blocks, span.line, key=lambda each: each.lineno) - 1
    return blocks[place] if place >= 0 and span.line <= (blocks[place].end_lineno or 0) else tree


@lru_cache(maxsize=64)
def _blocks(tree: ast.Module) -> list[ast.FunctionDef | ast.ClassDef]:
    return [node for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)]
