"""Finds the cause of `backward-on-non-tensor`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensorlens.analysis.naming.assignments import Assigned, assigned_before, receiver
from tensorlens.analysis.naming.line_parts import span_of
from tensorlens.analysis.plain_flow import plain_flow
from tensorlens.analysis.trace_index import OPS_LEAVING_TORCH, TraceIndex
from tensorlens.diagnostics.shared.edits.cuts import without_conversion
from tensorlens.diagnostics.shared.edits.statements import statement_at
from tensorlens.diagnostics.shared.wording import finding, fix, op_text, severity_of
from tensorlens.records.model import Call, Failure
from tensorlens.records.report import Diagnostic, Edit, Fix, Label

CODE = "backward-on-non-tensor"
_NUMBERS = ("float", "int", "bool", "complex", "ndarray", "float16", "float32", "float64", "int32", "int64")


def find(facts: TraceIndex) -> Iterator[Diagnostic]:
    for failure in facts.failures(CODE):
        if failure.op is None:
            yield explain(facts, failure)


def explain(facts: TraceIndex, failure: Failure) -> Diagnostic:
    """Reports what the object is instead of a tensor, and the line that made it."""
    kind = failure.message.split("'")[1] if "'" in failure.message else "an object"
    span = facts.span(failure.site)
    node = None if span is None else receiver(facts.trace.sources.get(span.file, ""), span)
    name = f"`{node}`" if node else "the object"
    left = _left_torch(facts, failure)
    made = None if span is None else assigned_before(facts.trace.sources.get(span.file, ""), span)
    return finding(
        CODE,
        severity_of(failure),
        f"backward was called on {name}, which is {_article(kind)}, not a tensor",
        _why(kind, left),
        [
            facts.label("needed_here", failure.site, f"{_article(kind)} has no `backward`"),
            *_made(facts, made, left),
        ],
        fixes=_fixes(facts, kind, left, made),
        evidence={"type": kind},
    )


def _article(kind: str) -> str:
    return "`None`" if kind == "NoneType" else f"{'an' if kind[0] in 'aeiou' else 'a'} `{kind}`"


def _left_torch(facts: TraceIndex, failure: Failure) -> Call | None:
    """Finds the last call that turned a tensor into the plain value that backward was called on, if the source leads
    from one to the other."""
    span = facts.span(failure.site)
    node = None if span is None else facts.names.syntax.node(span)
    inner = node.func if isinstance(node, ast.Call) else node
    if span is None or not isinstance(inner, ast.Attribute):
        return None
    target, flow = span_of(inner.value, facts.trace.sources[span.file], span.file), plain_flow(facts.trace)
    for call in reversed(facts.calls):
        if call.index < failure.index and call.op in OPS_LEAVING_TORCH:
            place = facts.span(call.site)
            if place is not None and flow.leads(place, target):
                return call
    return None


def _made(facts: TraceIndex, made: Assigned | None, left: Call | None) -> Iterator[Label | None]:
    place = None if left is None else facts.span(left.site)
    if left is not None and (made is None or place is None or place.line != made.span.line):
        yield facts.label("value_made_here", left.site, f"{op_text(left.op)} gives a plain value")
    if made is not None:
        is_left = left is not None and place is not None and place.line == made.span.line
        text = f"`{made.name}` gets its value here"
        if is_left and left is not None:
            text = f"{op_text(left.op)} gives a plain value"
        yield Label("value_made_here", made.span, text)


def _why(kind: str, left: Call | None) -> str:
    if kind == "NoneType":
        return "a function without `return` gives None"
    if kind.rpartition(".")[2] in _NUMBERS:
        return "a plain number has no gradient history: there is nothing to differentiate"
    return "only a tensor has a gradient history"


def _fixes(facts: TraceIndex, kind: str, left: Call | None, made: Assigned | None) -> tuple[Fix, ...]:
    place = None if made is None else made.span
    if kind == "NoneType":
        return (fix("if a function is to give the loss, return it there", place=place),)
    if kind in ("tuple", "list"):
        return (fix("add the losses to one tensor, and call backward on the sum", place=place),)
    if left is not None and kind.rpartition(".")[2] in _NUMBERS:
        edit = _kept(facts, left, made)
        text = f"keep the tensor for backward, and use {op_text(left.op)} only to print or log"
        return (fix(text, *(edit,) if edit else (), place=place),)
    if kind.rpartition(".")[2] in _NUMBERS:
        return (fix("start from a tensor: `sum()` of nothing is the number 0", place=place),)
    return (fix("call backward on the tensor that holds the loss", place=place),)


def _kept(facts: TraceIndex, left: Call, made: Assigned | None) -> Edit | None:
    """Keeps the tensor where the plain value is given its name."""
    span = facts.trace.sites[left.site].span
    statement = statement_at(facts, span.file, span.line)
    if made is None or not isinstance(statement, ast.Assign | ast.AugAssign) or statement.lineno != made.span.line:
        return None
    value = span_of(statement.value, facts.trace.sources[span.file], span.file)
    return without_conversion(facts, span) if value == span else None
