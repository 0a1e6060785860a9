"""Finds where a statement keeps a value that it computes: a variable, an attribute, an item, or a part of a record."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from tensorlens.analysis.code_around import function_around, parent_of, scope_around, statement_at
from tensorlens.analysis.naming.syntax import called_name, last_name
from tensorlens.analysis.trace_index import TraceIndex

_READING = frozenset("item float cpu detach round double numpy tolist".split())
_RECORDS = frozenset(("dict", "SimpleNamespace", "OrderedDict", "tuple", "list"))
_DICTS = frozenset(("dict", "OrderedDict"))
_ADDING = frozenset("append extend update add_ appendleft".split())
_FUNCTIONS = ast.FunctionDef | ast.AsyncFunctionDef
_MAX_HOPS = 3


@dataclass(frozen=True, slots=True)
class KeptValue:
    """A place that a statement sets to a value."""

    statement: ast.stmt
    root: str  # the variable or attribute that holds it: `report`, `self.loss`
    name: str  # the place as the source may write it: `report['mse']`
    value: ast.expr  # what it is set to, without the record around it
    file: str
    site: int  # of the statement


def kept_value(facts: TraceIndex, site: int) -> KeptValue | None:
    """Returns where the result of a call itself is kept, if it is given to nothing that may add it up.

    A function that only computes and returns it is gone through, to the statement that calls the function.
    """
    for _ in range(_MAX_HOPS):
        span, node = facts.span(site), facts.node_at(site)
        if span is None or node is None:
            return None
        found = _upwards(facts, span.file, node)
        if isinstance(found, KeptValue):
            return KeptValue(found.statement, found.root, found.name, found.value, found.file, site)
        function = function_around(facts, span.file, span.line) if found else None
        if function is None or not _is_pure(function):
            return None
        caller = facts.trace.sites[site].caller
        if caller is None:
            return None
        site = caller
    return None


def _upwards(facts: TraceIndex, file: str, node: ast.AST) -> KeptValue | bool:
    """Returns the place that a value is kept in; True: a `return` gives it, False: it is used in another way."""
    value, label, above = node, "", parent_of(facts, file, node)
    while above is not None and not isinstance(above, ast.stmt):
        if value is node and _is_arithmetic(above, node):
            value = above
        elif isinstance(above, ast.keyword):
            label = label or f".{above.arg or ''}"
        elif isinstance(above, ast.Dict) and node in above.values:
            key = above.keys[above.values.index(node)]
            label = label or (f"[{ast.unparse(key)}]" if key is not None else "")
        elif not isinstance(above, ast.Tuple | ast.List):
            is_given = isinstance(above, ast.Call) and (node in above.args or node in above.keywords)
            is_alone = isinstance(parent_of(facts, file, above), ast.Expr)  # else it takes what `update()` returns
            if not is_given or not (_is_record(facts, above) or (called_name(above) == "update" and is_alone)):
                return False
        node, above = above, parent_of(facts, file, above)
    if isinstance(above, ast.Return):
        return value is node
    kept = _kept(above, (node, value, label), file) if isinstance(above, ast.stmt) else None
    return kept if kept is not None and _keeps_one(facts, kept) else False


def _keeps_one(facts: TraceIndex, kept: KeptValue) -> bool:
    """Returns whether a place has the value that it was set to last: an attribute without code, an item of a dict."""
    nodes = [node for _, tree in facts.trees() for node in ast.walk(tree)]
    if "." in kept.root:
        last = kept.root.rpartition(".")[2]
        if any(isinstance(node, ast.FunctionDef) and node.name == last for node in nodes):
            return False
    if isinstance(kept.statement, ast.Assign) and not isinstance(kept.statement.targets[0], ast.Subscript):
        return True
    own = nodes if "." in kept.root else [*ast.walk(scope_around(facts, kept.file, kept.statement.lineno))]
    made = [node.value for node in own if isinstance(node, ast.Assign) and kept.root in map(ast.unparse, node.targets)]
    is_dict = [isinstance(each, ast.Dict | ast.DictComp) or called_name(each) in _DICTS for each in made]
    return isinstance(kept.statement, ast.AnnAssign) or (bool(is_dict) and all(is_dict))


def _is_arithmetic(above: ast.AST | None, node: ast.AST) -> bool:
    """Returns whether a part of an expression computes a number of a value, without other values but a length."""
    if isinstance(above, ast.BinOp):
        other = above.right if above.left is node else above.left
        return all(called_name(each) == "len" for each in ast.walk(other) if isinstance(each, ast.Call))
    is_read = isinstance(above, ast.Call) and last_name(above.func) in _READING
    return is_read or isinstance(above, ast.UnaryOp | ast.Attribute)


def _is_record(facts: TraceIndex, call: ast.AST) -> bool:
    """Returns whether a call makes a record of its arguments: a dict, or an object of a class without code."""
    name = called_name(call)
    classes = [
        node
        for _, tree in facts.trees()
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef) and node.name == name
    ]
    own = [each for node in classes for each in node.body if isinstance(each, ast.FunctionDef)]
    named = {last_name(base) for node in classes for base in node.bases}
    named |= {
        last_name(each.func if isinstance(each, ast.Call) else each) for n in classes for each in n.decorator_list
    }
    return name in _RECORDS or (
        len(classes) == 1 and not own and bool(named & {"dataclass", "NamedTuple", "TypedDict"})
    )


def _kept(statement: ast.stmt, given: tuple[ast.AST, ast.AST, str], file: str) -> KeptValue | None:
    node, value, label = given
    place: ast.expr | None = None
    if isinstance(statement, ast.Expr) and called_name(statement.value) == "update":
        method = statement.value.func  # type: ignore[attr-defined]
        place = method.value if isinstance(method, ast.Attribute) else None
    elif isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        place = statement.targets[0]
        if isinstance(place, ast.Tuple) and isinstance(node, ast.Tuple) and len(place.elts) == len(node.elts):
            around = [each for each, part in zip(place.elts, node.elts, strict=True) if value is part]
            place = around[0] if around else None
    elif isinstance(statement, ast.AnnAssign):
        place = statement.target
    root = place.value if isinstance(place, ast.Subscript) and isinstance(place.slice, ast.Constant) else place
    if place is None or not _is_plain(root) or not isinstance(value, ast.expr):
        return None
    is_update = isinstance(statement, ast.Expr) and label.startswith(".")
    name = f"{ast.unparse(place)}{f'[{label[1:]!r}]' if is_update else label}"
    return KeptValue(statement, ast.unparse(root), name, value, file, -1)  # type: ignore[arg-type]


def _is_plain(node: ast.AST | None) -> bool:
    return isinstance(node, ast.Name) or (isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name))


def _is_pure(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Returns whether a function has no loop and keeps nothing for its next call."""
    nodes = [node for part in function.body for node in ast.walk(part)]
    is_kept = any(
        isinstance(node, ast.AugAssign | ast.For | ast.While | ast.Global | ast.Nonlocal | ast.Yield)
        or (isinstance(node, ast.Attribute | ast.Subscript) and not isinstance(node.ctx, ast.Load))
        or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Call))
        for node in nodes
    )
    return not is_kept


def keepers(facts: TraceIndex) -> set[str]:
    """Returns the names of functions and methods of a program that may keep something for their next call.

    Those of functions in other functions, and of methods that a call of the object runs, are "": they have other names
    where they are called.
    """
    found = set[str]()
    for node in (node for _, tree in facts.trees() for node in ast.walk(tree)):
        if isinstance(node, ast.Module | ast.ClassDef | _FUNCTIONS):
            names = {each.name for each in node.body if isinstance(each, _FUNCTIONS) and _keeps(each)} - {"__init__"}
            is_renamed = isinstance(node, _FUNCTIONS) or bool(names & {"__call__", "forward"})
            found |= names | ({""} if names and is_renamed else set())
    return found


def _keeps(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    nodes = [node for part in function.body for node in ast.walk(part)]
    own = {node.id for node in nodes if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)}
    for node in nodes:
        is_written = isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load)
        target = node.func if isinstance(node, ast.Call) else None
        is_added = isinstance(target, ast.Attribute) and target.attr in _ADDING and ast.unparse(target.value) not in own
        if is_written or is_added or isinstance(node, ast.Global | ast.Nonlocal):
            return True
    return False


def occurrences(nodes: Iterator[ast.AST], root: str) -> list[ast.expr]:
    """Returns the places among some nodes that name a variable or an attribute."""
    kind = ast.Attribute if "." in root else ast.Name
    return [node for node in nodes if isinstance(node, kind) and ast.unparse(node) == root]


def is_plain_set(facts: TraceIndex, file: str, node: ast.expr) -> bool:
    """Returns whether a place only sets something: `report = ...`, `report["mse"] = ...`, `report.update()`."""
    if not isinstance(getattr(node, "ctx", ast.Load()), ast.Load):
        return not isinstance(parent_of(facts, file, node), ast.AugAssign)
    above = parent_of(facts, file, node)
    further = parent_of(facts, file, above) if above is not None else None
    if isinstance(above, ast.Subscript) and isinstance(above.ctx, ast.Store):
        return not isinstance(further, ast.AugAssign)
    is_update = isinstance(above, ast.Attribute) and above.attr == "update" and isinstance(further, ast.Call)
    statement = statement_at(facts, file, node.lineno)
    return is_update and isinstance(statement, ast.Expr) and statement.value is further
