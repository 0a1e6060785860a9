"""Finds which names can be written at a line, and the statements of one block that two lines are in."""

from __future__ import annotations

import ast

from tensorlens.analysis.code_around import (
    block_around,
    function_around,
    parent_of,
    statement_around,
    statement_at,
    upwards,
)
from tensorlens.analysis.naming.bindings import root_of
from tensorlens.analysis.naming.places import place_of
from tensorlens.analysis.naming.syntax import plain_name
from tensorlens.analysis.naming.variables import owned_by
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.diagnostics.shared.edits.statements import inserted_after
from tensorlens.records.model import Site, Span
from tensorlens.records.report import Edit


def receiver(facts: TraceIndex, site: int | None, method: str) -> str | None:
    """Returns `self.optimizer` if the expression at a site is `self.optimizer.step(...)` and `method` is "step"."""
    node = facts.node_at(site)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == method:
        return plain_name(node.func.value)
    return None


def changed_name(facts: TraceIndex, site: int | None) -> str | None:
    """Returns `w` if the line at a site changes the tensor `w` by hand: `w -= ...`, `w.data -= ...`, `w.sub_(...)`."""
    span = facts.span(site)
    statement = None if span is None else statement_around(facts, span)
    target: ast.expr | None = None
    if isinstance(statement, ast.AugAssign):
        target = statement.target
    elif isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        target = statement.targets[0] if getattr(statement.targets[0], "attr", "") == "data" else None
    elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        called = statement.value.func
        is_write = isinstance(called, ast.Attribute) and called.attr.endswith("_")
        target = called.value if is_write and isinstance(called, ast.Attribute) else None
    if isinstance(target, ast.Attribute) and target.attr == "data":
        target = target.value
    return None if target is None else plain_name(target)


def added_after(facts: TraceIndex, site: int | None, code: str) -> Edit | None:
    """Adds a statement after the one at a site: on a line of its own, or behind it if it shares its line."""
    span = facts.span(site)
    statement = None if span is None else statement_at(facts, span.file, span.line)
    if span is None or statement is None:
        return None
    edit = inserted_after(facts, span.file, span.line, code)
    if edit is not None:
        return edit
    simple = statement_around(facts, span)
    if not isinstance(simple, ast.Expr | ast.Assign | ast.AugAssign):
        return None
    end = facts.span_of(simple, span.file)
    return Edit(Span(span.file, end.end_line, end.end_column, end.end_line, end.end_column), f"; {code}")


def is_visible(facts: TraceIndex, name: str, known: int, place: int) -> bool:
    """Returns whether a name that the site `known` uses means the same object at the site `place`.

    It does in the same function, in a function inside it, in another method of the class if it begins with `self.`, and
    in any function of the file if it is a name of the file's top level and the function has none like it.
    """
    one, other = facts.trace.sites[known], facts.trace.sites[place]
    if one.span.file != other.span.file:
        return False
    outer, inner = place_of(one)[1], place_of(other)[1]
    if outer == inner:
        return True
    root = root_of(name)
    if root == "self":
        is_class = outer.rpartition(".")[0] == inner.rpartition(".")[0] != ""
        return (
            is_class and "." in name and not outer.endswith(">") and _has_self(facts, one) and _has_self(facts, other)
        )
    if root in owned_by(_function(facts, other)):
        return False
    is_inside = inner.startswith(f"{outer}.<locals>.")
    return is_inside or outer == "<module>"


def _function(facts: TraceIndex, site: Site) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
    return function_around(facts, site.span.file, site.span.line)


def _has_self(facts: TraceIndex, site: Site) -> bool:
    function = _function(facts, site)
    return function is not None and bool(function.args.args) and function.args.args[0].arg == "self"


def lines_of_frame(facts: TraceIndex, one: int, other: int) -> tuple[int, int] | None:
    """Returns the sites, in the innermost function that ran both, of the lines that led to two sites."""
    pairs = ((site, facts.site_in(facts.scope(site), other)) for site in facts.call_chain(one))
    return next(((site, match) for site, match in pairs if match is not None), None)


def beside(facts: TraceIndex, one: Span, other: Span) -> tuple[ast.stmt, ast.stmt] | None:
    """Returns the statements of one block that two lines are in; None if they are in one statement, or in different
    functions."""
    if one.file != other.file or function_around(facts, one.file, one.line) is not function_around(
        facts, other.file, other.line
    ):
        return None
    first, second = statement_at(facts, one.file, one.line), statement_at(facts, other.file, other.line)
    if first is None or second is None:
        return None
    for upper in upwards(facts, one.file, first):
        block = block_around(facts, one.file, upper)
        for lower in upwards(facts, one.file, second):
            if any(each is lower for each in block):
                return None if upper is lower else (upper, lower)
    return None


def names_in(node: ast.AST, context: type[ast.expr_context]) -> set[str]:
    """Returns the names, and the attributes as `self.model`, that a piece of code reads or assigns to."""
    return {
        text
        for part in ast.walk(node)
        if isinstance(part, ast.Name | ast.Attribute) and isinstance(part.ctx, context) and (text := plain_name(part))
    }


def has_other_name(facts: TraceIndex, file: str, name: str) -> bool:
    """Returns whether a line of the file assigns the value of a name as it is: `kept = h`, `self.state = h`."""
    nodes = ast.walk(facts.tree(file))
    values = (node.value for node in nodes if isinstance(node, ast.Assign))
    return any(isinstance(value, ast.Name) and value.id == name for value in values)


def only_block_of(facts: TraceIndex, file: str, statement: ast.stmt) -> ast.With | None:
    """Returns the `with` statement with one context whose only statement this is."""
    around = parent_of(facts, file, statement)
    return around if isinstance(around, ast.With) and len(around.body) == 1 and len(around.items) == 1 else None
