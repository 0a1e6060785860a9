"""Names items of a tensor that a function takes by an index tensor, which copies them, and only changes in place."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensorlens.analysis.code_around import function_around, statement_around
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.records.model import Call
from tensorlens.records.report import Label, StandingOut

_Function = ast.FunctionDef | ast.AsyncFunctionDef


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    facts, seen = training.facts, set[int]()
    for call in facts.calls:
        if op_name(call) != "getitem" or call.site in seen or not call.inputs or not call.outputs:
            continue
        seen.add(call.site)
        base, copy = call.inputs[0].tensor, call.outputs[0].tensor
        if facts.storage_of(base, call.index) != facts.storage_of(copy, call.index):
            yield from _sentence(facts, call)


def _sentence(facts: TraceIndex, call: Call) -> Iterator[StandingOut]:
    span = facts.span(call.site)
    statement = None if span is None else statement_around(facts, span)
    function = None if span is None else function_around(facts, span.file, span.line)
    if span is None or function is None or not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return
    target, value = statement.targets[0], statement.value
    if not isinstance(target, ast.Name) or not isinstance(value, ast.Subscript) or not isinstance(value.ctx, ast.Load):
        return
    changes = _changes(function, target.id)
    if changes is None or not changes or facts.names.syntax.node(span) is not value:
        return
    base = facts.code_of(value.value, span.file)
    yield stands_out(
        f"`{facts.code_of(value, span.file)}` copies items of `{base}`, because the index is a tensor: what changes "
        f"`{target.id}` in place leaves `{base}` as it is, and nothing else reads `{target.id}`",
        Label("observed_here", facts.span_of(changes[0], span.file), "changes the copy"),
        Label("value_made_here", facts.span_of(value, span.file), "a copy"),
    )


def _changes(function: _Function, name: str) -> list[ast.stmt] | None:
    """Returns the statements that change a variable in place; None if another statement uses it."""
    stored = [
        n for n in ast.walk(function) if isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Store)
    ]
    found: list[ast.stmt] = []
    statements = [node for node in ast.walk(function) if isinstance(node, ast.stmt) and not hasattr(node, "body")]
    for statement in statements:
        uses = [n for n in ast.walk(statement) if isinstance(n, ast.Name) and n.id == name]
        if not any(isinstance(n.ctx, ast.Load) for n in uses):
            if uses and isinstance(statement, ast.AugAssign):
                found.append(statement)
            continue
        if not _is_change(statement, name):
            return None
        found.append(statement)
    heads = (node for node in ast.walk(function) if isinstance(node, ast.stmt) and hasattr(node, "body"))
    for head in heads:
        parts = [part for field, part in ast.iter_fields(head) if field in ("test", "iter", "items")]
        nodes = [n for part in parts for each in (part if isinstance(part, list) else [part]) for n in ast.walk(each)]
        if any(isinstance(n, ast.Name) and n.id == name for n in nodes):
            return None
    augmented = sum(isinstance(each, ast.AugAssign) for each in found)
    return found if len(stored) - augmented == 1 else None


def _is_change(statement: ast.stmt, name: str) -> bool:
    """Returns whether a statement only changes a variable: `x.mul_(a).add_(b)`, `x += a`, `x[i] = a`."""
    if isinstance(statement, ast.AugAssign):
        target = statement.target
        base = target.value if isinstance(target, ast.Subscript) else target
        return isinstance(base, ast.Name) and base.id == name
    if isinstance(statement, ast.Assign):
        return all(
            isinstance(each, ast.Subscript) and isinstance(each.value, ast.Name) and each.value.id == name
            for each in statement.targets
        )
    call = statement.value if isinstance(statement, ast.Expr) else None
    while isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute):
        if not call.func.attr.endswith("_"):
            return False
        call = call.func.value
    return isinstance(call, ast.Name) and call.id == name
