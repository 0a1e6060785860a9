"""Makes the edits of the helps that the front matter of a page offers, by the name that the page gives each edit.

An edit is made only where recorded facts and the syntax leave no doubt; else the help stays a text.
"""

from __future__ import annotations

import ast
from collections.abc import Callable

from tensorlens.analysis.naming.line_parts import span_of
from tensorlens.diagnostics.shared.edits.no_grad import as_result, under_no_grad
from tensorlens.diagnostics.shared.rejected_call import RejectedCall
from tensorlens.records.model import Span
from tensorlens.records.report import Edit
from tensorlens.records.source import tree_of

Edits = tuple[Edit, ...]
Made = Callable[[RejectedCall, Span | None], Edits | None]
"""Makes the edits of a help for a rejected call and the place of the help; None if it cannot be made safely."""


def no_grad_mode(rejected: RejectedCall, place: Span | None) -> Edits | None:
    """Replaces the `inference_mode` that begins at the place, as a block or as a decorator, by `no_grad`."""
    tree = None if place is None else tree_of(rejected.facts.trace.sources.get(place.file, ""))
    if place is None or tree is None:
        return None
    lines = range(place.line, place.end_line + 1)
    nodes = [node for node in ast.walk(tree) if isinstance(node, ast.expr) and node.lineno in lines]
    named = [node for node in nodes if _name(node) == "inference_mode"]
    calls = [node for node in nodes if isinstance(node, ast.Call) and _name(node.func) == "inference_mode"]
    if len(named) != 1 or not isinstance(named[0], ast.Attribute) or any(each.args or each.keywords for each in calls):
        return None
    span = span_of(named[0], rejected.facts.trace.sources[place.file], place.file)
    begin = span.end_column - len("inference_mode")
    return (Edit(Span(place.file, span.end_line, begin, span.end_line, span.end_column), "no_grad"),)


def _name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


EDITS: dict[str, Made] = {
    "no_grad_mode": no_grad_mode,
    "under_no_grad": lambda rejected, place: under_no_grad(rejected),
    "as_result": lambda rejected, place: as_result(rejected),
}
"""The edits that a page can name for a help, in `edits` of its front matter."""
