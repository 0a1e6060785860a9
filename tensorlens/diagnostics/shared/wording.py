"""Puts ops, names and counts into words, and makes findings.

The wording follows rustc's guide: lower case, no full stop, code in backticks. The title states what happened, labels
what happened at their lines, and only fixes give advice.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from dataclasses import replace

from tensorlens.analysis.naming.code_text import change_text
from tensorlens.analysis.run_numbers import run_number
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.diagnostics.shared.role_names import ROLE_NAMES
from tensorlens.records.model import Backward, Call, Failure, Span
from tensorlens.records.report import Diagnostic, Edit, Fix, Label, Severity
from tensorlens.records.source import one_line, text_of

_MADE_BY = re.compile(r"the tensor made by `(.*)`( \(.*\))")
_PRIMARY = (ast.Name, ast.Attribute, ast.Call, ast.Subscript)


def op_text(op: str) -> str:
    """Returns an op as a person writes it: "`detach()`", "`.data`", "`torch.argmax()`", "an item assignment"."""
    if op.endswith("__setitem__"):
        return "an item assignment"
    if op.endswith("__getitem__"):
        return "indexing"
    if op.endswith(".__get__"):
        return f"`.{op.split('.')[-2]}`"
    if op.endswith(".__set__"):
        return f"assigning `.{op.split('.')[-2]}`"
    if op.endswith(".step"):
        return f"`{op}()`"
    return f"`{op.removeprefix('Tensor.').replace('.distributed_c10d.', '.')}()`"


def node_text(node: str) -> str:
    """Returns a node's name in backticks, without its namespace: "`SigmoidBackward0`"."""
    return f"`{node.rpartition(chr(58))[2]}`"


def ordinal(number: int) -> str:
    suffix = "th" if 10 <= number % 100 <= 20 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{suffix}"


def as_written(facts: TraceIndex, event: Call | Backward) -> str:
    """Returns what a line does as the script writes it, in backticks: "`p -= ...`", "`x[0] = ...`", "`c.zero_()`".

    It is the op's name only if the source is not known.
    """
    return code_at(facts, event.site, event.op)


def code_at(facts: TraceIndex, site: int | None, op: str) -> str:
    """Returns what the script writes at a site, in backticks, as `as_written` does. `op` is what runs there."""
    text = source_text(facts, site, limit=0)
    span = facts.span(site)
    node = None if span is None else facts.names.syntax.node(span)
    is_long = span is not None and (len(text) > 40 or span.line != span.end_line)
    if is_long or not isinstance(getattr(node, "ctx", ast.Load()), ast.Load) or isinstance(node, ast.AugAssign):
        text = change_text(node) or one_line(text, 40)
    return f"`{text.replace('`', chr(39))}`" if text else op_text(op)


def in_iteration(facts: TraceIndex, event: Call | Backward) -> str:
    """Returns which run of its line an event belongs to, with a blank before it.

    It is " in the 3rd iteration" of the loop around the line, or of the only loop that runs it, once an iteration;
    else " in the 3rd call of `Net.forward`" or " in its 3rd run". It is "" if the line ran once, or if the recorded
    calls do not establish the number.
    """
    run = run_number(facts.trace, event)
    if run is None:
        return ""
    if run.kind == "run":
        return f" in its {ordinal(run.number)} run"
    return f" in the {ordinal(run.number)} {run.kind}" + (f" of `{run.function}`" if run.function else "")


def source_text(facts: TraceIndex, site: int | None, limit: int = 40) -> str:
    """Returns the expression at a site as the script writes it, cut to `limit` characters."""
    span = facts.span(site)
    return "" if span is None else one_line(text_of(facts.trace.sources.get(span.file, ""), span), limit)


def severity_of(failure: Failure) -> Severity:
    """Returns the severity of a failure: "note" if the script caught it, because it may be intended, else "error"."""
    return "note" if failure.caught else "error"


def finding(
    code: str, severity: Severity, title: str, explanation: str, labels: Iterable[Label | None], **more: object
) -> Diagnostic:
    """Makes a diagnostic from the labels whose line is known, each once. `more` are its notes, fixes and evidence.

    Raises:
        KeyError: a label has a role that is not in `ROLE_NAMES`.
    """
    kept: list[Label] = []
    for label in labels:
        if label is not None and label.role not in ROLE_NAMES:
            raise KeyError(label.role)
        if label is not None and not any((k.role, k.span) == (label.role, label.span) for k in kept):
            kept.append(label)
    fixes: Iterable[Fix] = more.pop("fixes", ())  # type: ignore[assignment]
    return Diagnostic(
        code,
        severity,
        title,
        explanation,
        tuple(kept),
        fixes=in_order(fixes),
        **more,  # type: ignore[arg-type]
    )


def in_order(fixes: Iterable[Fix]) -> tuple[Fix, ...]:
    """Leaves "or" out of the first title, and a second "or" out of the others: an edit may have moved a fix up."""
    found = []
    for position, each in enumerate(fixes):
        title = each.title
        while title.startswith("or or " if position else "or "):
            title = title.removeprefix("or ")
        found.append(each if title == each.title else replace(each, title=title))
    return tuple(found)


def fix(title: str, *edits: Edit, place: Span | None = None) -> Fix:
    """Makes a suggestion. `place` is the line to change, if there are no edits that name it."""
    return Fix(title, edits, place or (edits[0].span if edits else None))


def with_method(name: str, method: str) -> str:
    """Returns `name.method` in backticks. `name` is a result of `named`, which need not be code."""
    made = _MADE_BY.fullmatch(name)
    text, where = (made[1], made[2]) if made else (name.strip("`"), "")
    try:
        tree = ast.parse(text, mode="eval").body if made or name.startswith("`") else None
    except SyntaxError:  # cut short
        tree = None
    if tree is None:
        return f"`.{method}` of {name}"
    return (f"`{text}.{method}`" if isinstance(tree, _PRIMARY) else f"`({text}).{method}`") + where


def named(facts: TraceIndex, number: int | None, at: int | None = None) -> str:
    """Returns a tensor's name for prose, in backticks if it is code."""
    return "a tensor" if number is None else facts.names.quoted(number, at)
