"""Makes a view with recording on, where a `no_grad` block or decorator has nothing else to do."""

from __future__ import annotations

import ast
from typing import TypeGuard

from tensorlens.analysis.code_around import block_around, function_around, parent_of, statement_at
from tensorlens.diagnostics.shared.edits.statements import indents, moved_before
from tensorlens.diagnostics.shared.rejected_call import RejectedCall
from tensorlens.records.model import Span
from tensorlens.records.report import Edit


def view_outside_no_grad(rejected: RejectedCall, place: Span) -> tuple[Edit, ...] | None:
    """Takes the statement that makes a view out of its `with torch.no_grad():`, or the decorator off its function.

    None if the view is one of a leaf, whose values are set, or if the block does something else before the view.
    """
    facts = rejected.facts
    view = next((a.tensor for a in rejected.inputs if rejected.is_view(a.tensor)), None)
    base = None if view is None else facts.tensor(view).base
    statement = statement_at(facts, place.file, place.line)
    if base is None or rejected.is_leaf(base) or statement is None:
        return None
    around = parent_of(facts, place.file, statement)
    if _is_no_grad(around):
        return _out_of_block(rejected, place, statement, around)
    function = function_around(facts, place.file, place.line)
    if function is None or len(function.body) != 1 or len(function.decorator_list) != 1:
        return None
    decorator = function.decorator_list[0]
    line = decorator.lineno
    if "no_grad" not in ast.unparse(decorator) or decorator.end_lineno != line:
        return None
    return (Edit(Span(place.file, line, 0, line + 1, 0), ""),)


def _is_no_grad(node: ast.AST | None) -> TypeGuard[ast.With]:
    is_one = isinstance(node, ast.With) and len(node.items) == 1
    return is_one and "no_grad" in ast.unparse(node.items[0].context_expr)  # type: ignore[union-attr]


def _out_of_block(
    rejected: RejectedCall, place: Span, statement: ast.stmt, around: ast.With
) -> tuple[Edit, ...] | None:
    facts = rejected.facts
    if around.body[0] is not statement:
        return None
    if len(block_around(facts, place.file, statement)) > 1:
        return moved_before(facts, place.file, statement.lineno, around.lineno)
    first, last = statement.lineno, statement.end_lineno or statement.lineno
    outer, inner = (indents(facts, place.file, line)[0] for line in (around.lineno, first))
    if first == around.lineno or first != last or not inner.startswith(outer) or inner == outer:
        return None
    head = Edit(Span(place.file, around.lineno, 0, first, len(inner)), outer)
    return (head,)
