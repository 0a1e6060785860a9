"""Finds the attribute in which a method keeps the result of a call, as `self.mean` or `self.stats["mean"]`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensorlens.analysis.code_around import scope_around
from tensorlens.analysis.naming.syntax import last_name
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.records.model import Call


def kept_in(facts: TraceIndex, made: Call, number: int) -> tuple[str, str] | None:
    """Returns the class and the attribute, of a result that is kept alone, as one of several values, or as an item.

    A function that a method calls may have made the result. An item whose index is a variable is left out.
    """
    for place, each in enumerate(facts.call_chain(made.site)):
        site = facts.trace.sites[each]
        owner = site.function.rpartition(".")[0]
        if not owner or owner.endswith("<locals>"):
            continue
        names = site.targets if place == 0 and len(site.targets) == len(made.outputs) else ()
        target = next((name for name, out in zip(names, made.outputs, strict=False) if out.tensor == number), None)
        name = target if target is not None and target.startswith("self.") else _written(facts, each, target)
        return None if name is None or not _is_fixed(name) else (owner, name)
    return None


def attribute_of(name: str) -> str:
    """Returns "stats" for `self.stats["mean"]`."""
    return name.removeprefix("self.").partition("[")[0].partition(".")[0]


def _is_fixed(name: str) -> bool:
    """Returns whether each index in a name is a constant."""
    tree = ast.parse(name, mode="eval")
    return all(isinstance(node.slice, ast.Constant) for node in ast.walk(tree) if isinstance(node, ast.Subscript))


def _written(facts: TraceIndex, site: int, variable: str | None) -> str | None:
    """Returns the attribute that a statement of the function gives the value at a site, or a variable with it."""
    span, node = facts.span(site), facts.node_at(site)
    if span is None or node is None:
        return None
    for statement in ast.walk(scope_around(facts, span.file, span.line)):
        for target, value in _assigned(statement):
            if target.startswith("self.") and (item := _item(value, node, variable)) is not None:
                return target + item
    return None


def _assigned(statement: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """Yields the targets of a statement with their values, also those of `self.stats.update(mean=...)`."""
    if isinstance(statement, ast.Assign):
        for target in statement.targets:
            pairs = [(target, statement.value)]
            if isinstance(target, ast.Tuple) and isinstance(statement.value, ast.Tuple):
                pairs = list(zip(target.elts, statement.value.elts, strict=False))
            yield from ((ast.unparse(each), value) for each, value in pairs)
    elif isinstance(statement, ast.AnnAssign) and statement.value is not None:
        yield ast.unparse(statement.target), statement.value
    elif isinstance(statement, ast.Call) and isinstance(statement.func, ast.Attribute):
        if statement.func.attr == "update":
            yield ast.unparse(statement.func.value), statement


def _item(value: ast.expr, node: ast.AST, variable: str | None) -> str | None:
    """Returns the part of a value that is a node, or a variable: "" for all of it, "[0]" or ".mean"."""
    if value is node or (isinstance(value, ast.Name) and value.id == variable):
        return ""
    parts: list[tuple[str, ast.expr | None]] = []
    if isinstance(value, ast.Tuple | ast.List):
        parts = [(f"[{place}]", each) for place, each in enumerate(value.elts)]
    elif isinstance(value, ast.Dict):
        keys = (None if key is None else ast.unparse(key) for key in value.keys)
        parts = [(f"[{key}]", each) for key, each in zip(keys, value.values, strict=True) if key is not None]
    elif isinstance(value, ast.Call) and _makes_record(value):
        given = [(keyword.arg, keyword.value) for keyword in value.keywords]
        is_dict = last_name(value.func) in ("dict", "update")
        parts = [(f"['{name}']" if is_dict else f".{name}", each) for name, each in given]
        parts += [("", each) for each in value.args]
    return next((name for name, each in parts if each is not None and _item(each, node, variable) == ""), None)


def _makes_record(call: ast.Call) -> bool:
    """Returns whether a call only puts its arguments together, as `dict()`, `Stats()` and `update({...})` do."""
    name = last_name(call.func)
    return name in ("dict", "tuple", "list", "update") or name[:1].isupper()
