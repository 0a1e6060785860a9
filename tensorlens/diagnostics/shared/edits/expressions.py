"""Makes the edits of a help: an operation in place becomes one that makes a new tensor, an expression gets a method.

An edit is made only where the syntax of the line leaves no doubt about the result; else the functions return None.
"""

from __future__ import annotations

import ast

from tensorlens.analysis.naming.line_parts import span_of
from tensorlens.analysis.naming.syntax import plain_name
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.records.model import Call, Span
from tensorlens.records.report import Edit
from tensorlens.records.source import text_of, tree_of

_LOOSE = (ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.IfExp, ast.Lambda, ast.NamedExpr, ast.Await, ast.Starred)


def expanded_assignment(facts: TraceIndex, site: int) -> Edit | None:
    """Writes an augmented assignment to a name out: `x /= length + eps` becomes `x = x / (length + eps)`."""
    span = facts.trace.sites[site].span
    node = facts.names.syntax.node(span)
    augmented = facts.names.syntax.augmented(facts.trace.sites[site])
    if augmented is None or not isinstance(node, ast.AugAssign) or span.line != span.end_line:
        return None
    target, sign = augmented
    if target in facts.names.syntax.loop_names():
        return None  # what the loop goes over would keep the old tensor
    value = _text(facts, node.value, span.file)
    value = f"({value})" if _needs_brackets(node.op, node.value) else value
    return Edit(span, f"{target} = {target} {sign} {value}")


def _needs_brackets(op: ast.operator, value: ast.expr) -> bool:
    if isinstance(value, ast.BinOp) and isinstance(op, ast.Add | ast.Sub):
        return not isinstance(value.op, ast.Mult | ast.Div | ast.MatMult | ast.Pow)
    if isinstance(value, ast.BinOp) and isinstance(op, ast.Mult | ast.Div | ast.MatMult):
        return not isinstance(value.op, ast.Pow)
    return isinstance(value, (*_LOOSE, ast.Tuple))


def with_call(facts: TraceIndex, span: Span, method: str) -> Edit | None:
    """Appends a method call to the expression at `span`: `out.detach()` becomes `out.detach().clone()`."""
    node = facts.names.syntax.node(span)
    if not isinstance(node, ast.expr) or span.line != span.end_line:
        return None
    text = text_of(facts.trace.sources.get(span.file, ""), span)
    return Edit(span, f"({text}).{method}()" if isinstance(node, (*_LOOSE, ast.Tuple)) else f"{text}.{method}()")


def out_of_place(facts: TraceIndex, number: int, op: str) -> Edit | None:
    """Replaces methods that write, such as `x.mul_(2)`, by those that make a new tensor, which `x` is assigned to.

    The value of the expression goes where it went before, if the statement uses it.
    """
    span = facts.trace.sites[number].span
    node = facts.names.syntax.node(span)
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or span.line != span.end_line:
        return None
    if not op.startswith("Tensor."):  # `torch.relu_(x)`: the name before the dot is no tensor
        return None
    statement = _statement(facts, span)
    if not isinstance(statement, ast.Expr):
        name = _text(facts, node.func, span.file)
        return Edit(_span(facts, node.func, span.file), name[:-1]) if name.endswith("_") else None
    text, inner = "", statement.value
    while isinstance(inner, ast.Call) and isinstance(inner.func, ast.Attribute):
        method = inner.func.attr
        if not method.endswith("_") or method.endswith("__"):
            return None
        whole, before = _span(facts, inner, span.file), _span(facts, inner.func, span.file)
        arguments = text_of(
            facts.trace.sources[span.file],
            Span(span.file, before.end_line, before.end_column, whole.end_line, whole.end_column),
        )
        text, inner = f".{method[:-1]}{arguments}{text}", inner.func.value
    target = plain_name(inner)
    if target in facts.names.syntax.loop_names():
        return None  # what the loop goes over would keep the old tensor
    place = _span(facts, statement, span.file)
    if target is None or isinstance(inner, ast.Subscript) or place.line != place.end_line:
        return None
    return Edit(place, f"{target} = {target}{text}")


def without_inplace(facts: TraceIndex, call: Call) -> Edit | None:
    """Leaves out `inplace=True` where the statement uses the result."""
    span = facts.trace.sites[call.site].span
    node = facts.names.syntax.node(span)
    if not isinstance(node, ast.Call) or isinstance(_statement(facts, span), ast.Expr):
        return None
    return without_keyword(facts, node, "inplace", span.file)


def without_keyword(facts: TraceIndex, call: ast.Call, name: str, file: str) -> Edit | None:
    """Leaves an argument that is the last one out of a call on one line."""
    if not call.keywords or call.keywords[-1].arg != name or call.lineno != call.end_lineno:
        return None
    keyword = _span(facts, call.keywords[-1], file)
    before = [_span(facts, each, file) for each in (*call.args, *(k.value for k in call.keywords[:-1]))]
    begin = before[-1] if before else None
    column = keyword.column if begin is None else begin.end_column
    return Edit(Span(file, keyword.line, column, keyword.end_line, keyword.end_column), "")


def with_keyword(facts: TraceIndex, site: int, name: str, value: str) -> Edit | None:
    """Gives the call at a site one more argument, or another value of the one that it has."""
    span = facts.trace.sites[site].span
    node = facts.names.syntax.node(span)
    if not isinstance(node, ast.Call):
        return None
    for keyword in node.keywords:
        if keyword.arg is None:
            return None  # `**options` may give it too
        if keyword.arg == name:
            return Edit(_span(facts, keyword.value, span.file), value)
    given = [*node.args, *(keyword.value for keyword in node.keywords)]
    if not given:
        end = Span(span.file, span.end_line, span.end_column - 1, span.end_line, span.end_column - 1)
        return Edit(end, f"{name}={value}")
    last = _span(facts, max(given, key=lambda each: (each.lineno, each.col_offset)), span.file)
    end = Span(span.file, last.end_line, last.end_column, last.end_line, last.end_column)
    is_bare = isinstance(given[0], ast.GeneratorExp) and len(given) == 1
    return None if is_bare else Edit(end, f", {name}={value}")


def argument_with_call(facts: TraceIndex, file: str, line: int, name: str, method: str) -> Edit | None:
    """Appends a method call to the argument `name` of the only call on a line that is given it."""
    tree = tree_of(facts.trace.sources.get(file, ""))
    found = [
        argument
        for node in ast.walk(tree or ast.Module([], []))
        if isinstance(node, ast.Call) and node.lineno <= line <= (node.end_lineno or node.lineno)
        for argument in (*node.args, *(keyword.value for keyword in node.keywords))
        if argument.lineno == line and plain_name(argument) == name
    ]
    if len(found) != 1:
        return None
    return Edit(_span(facts, found[0], file), f"{name}.{method}()")


def _statement(facts: TraceIndex, span: Span) -> ast.stmt | None:
    """Finds the innermost statement around a place."""
    best: ast.stmt | None = None
    at = facts.names.syntax.node(span)
    for node in ast.walk(tree_of(facts.trace.sources.get(span.file, "")) or ast.Module([], [])):
        if isinstance(node, ast.stmt) and node.lineno <= span.line and span.end_line <= (node.end_lineno or 0):
            if best is None or node.lineno >= best.lineno:
                inner = node.lineno < span.line or any(each is at for each in ast.walk(node))
                best = node if inner else best
    return best


def _span(facts: TraceIndex, node: ast.expr | ast.stmt | ast.keyword, file: str) -> Span:
    return span_of(node, facts.trace.sources[file], file)  # type: ignore[arg-type]


def _text(facts: TraceIndex, node: ast.expr, file: str) -> str:
    return text_of(facts.trace.sources[file], _span(facts, node, file))
