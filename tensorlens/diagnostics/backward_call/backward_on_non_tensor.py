"""Finds the cause of `backward-on-non-tensor`."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.naming.assignments import Assigned, assigned_before, receiver
from tensorlens.analysis.trace_index import OPS_LEAVING_TORCH, TraceIndex
from tensorlens.diagnostics.shared.wording import finding, fix, op_text, severity_of
from tensorlens.records.model import Call, Failure, Span
from tensorlens.records.report import Diagnostic, Fix, Label

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
            *_made(facts, failure, made, left),
        ],
        fixes=_fixes(kind, left, None if made is None else made.span),
        evidence={"type": kind},
    )


def _article(kind: str) -> str:
    return "`None`" if kind == "NoneType" else f"{'an' if kind[0] in 'aeiou' else 'a'} `{kind}`"


def _left_torch(facts: TraceIndex, failure: Failure) -> Call | None:
    """Finds the last call before the failure that turned a tensor into plain numbers."""
    return next((c for c in reversed(facts.calls) if c.index < failure.index and c.op in OPS_LEAVING_TORCH), None)


def _made(facts: TraceIndex, failure: Failure, made: Assigned | None, left: Call | None) -> Iterator[Label | None]:
    if made is not None:
        leaves = left is not None and (where := facts.span(left.site)) is not None and where.line == made.span.line
        text = (
            f"{op_text(left.op)} gives a plain value"
            if leaves and left is not None
            else f"`{made.name}` gets its value here"
        )
        yield Label("value_made_here", made.span, text)
        return
    last = next((c for c in reversed(facts.calls) if c.index < failure.index), None)
    if last is not None:
        yield facts.label("value_made_here", last.site, "the last tensor computed before")


def _why(kind: str, left: Call | None) -> str:
    if kind == "NoneType":
        return "a function without `return` gives None"
    if kind.rpartition(".")[2] in _NUMBERS:
        return "a plain number has no gradient history: there is nothing to differentiate"
    return "only a tensor has a gradient history"


def _fixes(kind: str, left: Call | None, place: Span | None) -> tuple[Fix, ...]:
    if kind == "NoneType":
        return (fix("if a function is to give the loss, return it there", place=place),)
    if kind in ("tuple", "list"):
        return (fix("add the losses to one tensor, and call backward on the sum", place=place),)
    if left is not None and kind.rpartition(".")[2] in _NUMBERS:
        return (fix(f"keep the tensor for backward, and use {op_text(left.op)} only to print or log", place=place),)
    if kind.rpartition(".")[2] in _NUMBERS:
        return (fix("start from a tensor: `sum()` of nothing is the number 0", place=place),)
    return (fix("call backward on the tensor that holds the loss", place=place),)
