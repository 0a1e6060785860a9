"""Finds the cause of `backward-on-non-tensor`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensorlens.analysis.code_around import statement_at
from tensorlens.analysis.naming.assignments import Assigned, assigned_before, receiver
from tensorlens.analysis.naming.syntax import last_name
from tensorlens.analysis.plain_flow import plain_flow
from tensorlens.analysis.trace_index import OPS_LEAVING_TORCH, TraceIndex
from tensorlens.diagnostics.shared.edits.cuts import without_conversion
from tensorlens.diagnostics.shared.edits.statements import inserted_after
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
    ended = _without_return(facts, _receiver_of(facts, failure), made) if kind == "NoneType" else None
    return finding(
        CODE,
        severity_of(failure),
        f"backward was called on {name}, which is {_article(kind)}, not a tensor",
        _why(kind),
        [
            facts.label("needed_here", failure.site, f"{_article(kind)} has no `backward`"),
            None if ended is None else Label("value_made_here", ended.span, f"`{ended.name}` ends without a `return`"),
            *_made(facts, made, left),
        ],
        fixes=_returning(facts, ended) or _fixes(facts, kind, left, made),
        evidence={"type": kind},
    )


def _receiver_of(facts: TraceIndex, failure: Failure) -> ast.expr | None:
    """Returns the expression whose `backward` was called."""
    node = facts.node_at(failure.site)
    inner = node.func if isinstance(node, ast.Call) else node
    return inner.value if isinstance(inner, ast.Attribute) else None


def _without_return(facts: TraceIndex, loss: ast.expr | None, made: Assigned | None) -> Assigned | None:
    """Finds the function that gave None: the name of the only one that the source calls so, and its last statement."""
    if made is not None:
        statement = statement_at(facts, made.span.file, made.span.line)
        loss = statement.value if isinstance(statement, ast.Assign) else None
    if not isinstance(loss, ast.Call) or not isinstance(loss.func, ast.Name | ast.Attribute):
        return None
    name = last_name(loss.func)
    nodes = [(file, node) for file, tree in facts.trees() for node in ast.walk(tree)]
    found = [(file, node) for file, node in nodes if isinstance(node, ast.FunctionDef) and node.name == name]
    stored = (node for _, node in nodes if isinstance(getattr(node, "ctx", None), ast.Store))
    if any(last_name(node) == name for node in stored) or len(found) != 1:
        return None
    (file, function), *_ = found
    if function.decorator_list or any(
        isinstance(node, ast.Return | ast.Yield | ast.YieldFrom) for node in ast.walk(function)
    ):
        return None
    last = function.body[-1]
    return Assigned(name, facts.span_of(last, file))


def _returning(facts: TraceIndex, ended: Assigned | None) -> tuple[Fix, ...]:
    """Returns the value that the last statement of a function computes."""
    last = None if ended is None else statement_at(facts, ended.span.file, ended.span.line)
    if ended is None or not isinstance(last, ast.Assign) or not isinstance(last.targets[0], ast.Name):
        return ()
    code = f"return {last.targets[0].id}"
    edit = inserted_after(facts, ended.span.file, ended.span.line, code)
    return (fix(f"let `{ended.name}` give its value: `{code}`", edit),) if edit is not None else ()


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
    target, flow = facts.span_of(inner.value, span.file), plain_flow(facts.trace)
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


def _why(kind: str) -> str:
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
    value = facts.span_of(statement.value, span.file)
    return without_conversion(facts, span) if value == span else None
