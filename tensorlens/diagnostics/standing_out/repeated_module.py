"""Names lists that repeat one module, as `[make_layer()] * 4` does: all places are one layer."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensorlens.analysis.training.measured import MeasuredTraining, ParameterRow
from tensorlens.diagnostics.shared.standing_out_text import listed, stands_out
from tensorlens.records.model import Span
from tensorlens.records.report import Label, StandingOut


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    """Finds products of a number and a list that a call fills, if the call made parameters that steps use gradients of.

    `[layer] * 4` with a variable may share the layer on purpose.
    """
    facts = training.facts
    for file, tree in facts.trees():
        for node in ast.walk(tree):
            found = _repeated(node)
            if found is None:
                continue
            rows = _made_by(training, facts.span_of(found, file))
            if rows:
                yield stands_out(
                    f"`{facts.code_of(node, file)}` repeats the result of one call: "
                    f"`{facts.code_of(found.func, file)}()` makes {listed(rows)}",
                    Label("shared_here", facts.span_of(node, file), "one result, repeated"),
                )


def _repeated(node: ast.AST) -> ast.Call | None:
    """Returns the call in the list of `[call()] * number`; None if the number is less than 2."""
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Mult):
        return None
    for items, times in ((node.left, node.right), (node.right, node.left)):
        if isinstance(items, ast.List) and len(items.elts) == 1 and isinstance(items.elts[0], ast.Call):
            count = times.value if isinstance(times, ast.Constant) else 2
            return items.elts[0] if isinstance(count, int) and count > 1 else None
    return None


def _made_by(training: MeasuredTraining, span: Span) -> list[ParameterRow]:
    """Returns the parameters with gradients that a call of the source made and that an optimizer steps."""
    facts, rows = training.facts, []
    for row in training.rows:
        made = facts.creator(row.tensor)
        if made is None or not row.is_stepped or row.statistics is None or not row.statistics.filled:
            continue
        spans = [facts.trace.sites[site].span for site in facts.call_chain(made.site)]
        if any(_is_in(each, span) for each in spans):
            rows.append(row)
    return rows


def _is_in(one: Span, other: Span) -> bool:
    begins = (other.line, other.column) <= (one.line, one.column)
    return one.file == other.file and begins and (one.end_line, one.end_column) <= (other.end_line, other.end_column)
