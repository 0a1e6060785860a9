"""Finds the cause of `nonleaf-grad-access`."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from tensorlens.analysis.lineage import leaf_origin, leaves_above
from tensorlens.analysis.naming.code_text import OPERATORS
from tensorlens.analysis.naming.syntax import plain_name
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.diagnostics.shared.rejected import rejected_calls, report_rejected
from tensorlens.diagnostics.shared.rejected_call import RejectedCall
from tensorlens.records.error_messages import FindingText, entry
from tensorlens.records.model import Call
from tensorlens.records.report import Diagnostic

_CODE = "nonleaf-grad-access"
_TITLE = "`.grad` of {nonleaf} was read, which is not a leaf"


@dataclass(frozen=True, slots=True)
class _Rebound:
    """An assignment that gave the name of a leaf to a result, with the lines that made the result and the leaf."""

    name: str
    made: Call
    line: int
    leaf_line: int


def find(facts: TraceIndex) -> Iterator[Diagnostic]:
    known = entry(_CODE)
    assert known is not None
    for rejected in filter(RejectedCall.stands_alone, rejected_calls(facts, _CODE)):
        number = rejected.first(rejected.is_nonleaf)
        rebound = None if number is None else _rebound(facts, number, rejected.index)
        yield report_rejected(rejected, known, _COMPUTED if rebound is None else _words(facts, rebound))


_COMPUTED = FindingText(
    _TITLE,
    "backward keeps gradients only in leaves; {nonleaf} is computed, so its gradient is passed on and not kept",
    (
        "to keep it, call {nonleaf}`.retain_grad()` before backward",
        "if a parameter was meant, read the leaf's `.grad`: an assignment may have replaced the leaf by a result",
    ),
)


def _rebound(facts: TraceIndex, number: int, at: int) -> _Rebound | None:
    """Finds the line that gave a computed tensor the name of the leaf that it was computed from."""
    made = next(iter(facts.producers(number, at)), None)
    name = None if made is None else facts.names.script_name(number, made.index)
    place = None if made is None else facts.span(made.site)
    if made is None or place is None or name not in facts.trace.sites[made.site].targets:
        return None
    for leaf in leaves_above(facts, number, at):
        born = leaf_origin(facts, leaf, at)
        site = None if born is None else facts.trace.sites[born.site]
        if born is not None and site is not None and facts.names.script_name(leaf, born.index) == name in site.targets:
            return _Rebound(name, made, place.line, site.span.line)
    return None


def _words(facts: TraceIndex, rebound: _Rebound) -> FindingText:
    """Writes the text for a result that has the name of a leaf. It does not suggest `retain_grad()`, which would keep
    the gradient of the wrong tensor."""
    name, line = _escaped(rebound.name), rebound.line
    why = (
        f"line {line} gave the name `{name}`, which was a leaf's (made on line {rebound.leaf_line}), to a result; "
        "backward keeps gradients only in leaves"
    )
    update = _in_place(facts, rebound)
    if update:
        return FindingText(_TITLE, why, (f"update the leaf in place: `with torch.no_grad(): {_escaped(update)}`",))
    return FindingText(
        _TITLE,
        why,
        (
            f"give the result on line {line} another name, so that `{name}` stays the leaf",
            f"or, to train the result itself, make it the leaf: `.detach().requires_grad_()` at the end of line {line}",
        ),
    )


def _in_place(facts: TraceIndex, rebound: _Rebound) -> str:
    """Returns the update in place for an assignment: `w -= 0.1 * w.grad` for `w = w - 0.1 * w.grad`.

    "" if the assignment is no update by a gradient.
    """
    node = facts.names.syntax.node(facts.trace.sites[rebound.made.site].span)
    if not isinstance(node, ast.BinOp) or plain_name(node.left) != rebound.name:
        return ""
    reads = any(isinstance(part, ast.Attribute) and part.attr == "grad" for part in ast.walk(node.right))
    return f"{rebound.name} {OPERATORS[type(node.op)]}= {ast.unparse(node.right)}" if reads else ""


def _escaped(text: str) -> str:
    """Escapes the braces in text of the script, for use in a template with fields."""
    return text.replace("{", "{{").replace("}", "}}")
