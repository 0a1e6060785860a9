"""Finds modules that change their argument in place, as `nn.ReLU(inplace=True)`, where the caller reads it again."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from tensorlens.analysis.code_around import function_around
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.records.model import Call, Span

_ACTIVATIONS = frozenset(
    "relu relu6 leaky_relu elu selu celu hardtanh hardswish hardsigmoid silu mish threshold rrelu dropout "
    "alpha_dropout feature_alpha_dropout dropout1d dropout2d dropout3d".split()
)
_MAX_CALLS = 64  # after the change, until the reader is found


@dataclass(frozen=True, slots=True)
class ChangedArgument:
    """An in-place activation inside a module, and a call of the function that called the module, which reads the
    argument afterwards."""

    change: Call
    reader: Call
    name: str  # what the function calls the argument, where it is read
    made: Span | None  # the only place of the class that says `inplace=True`


def changed_arguments(facts: TraceIndex) -> Iterator[ChangedArgument]:
    """Yields these pairs, one for each line that calls such a module."""
    seen: set[int] = set()
    for place, call in enumerate(facts.calls):
        if op_name(call) not in _ACTIVATIONS or not call.writes or call.site in seen:
            continue
        seen.add(call.site)
        found = _found(facts, place, call)
        if found is not None:
            yield found


def _found(facts: TraceIndex, place: int, change: Call) -> ChangedArgument | None:
    span = facts.span(change.site)
    node = None if span is None else facts.names.syntax.node(span)
    function = None if span is None else function_around(facts, span.file, span.line)
    if span is None or function is None or not isinstance(node, ast.Call) or _says_so(node):
        return None
    names = _names(function, node)
    storage = facts.storage_of(change.writes[0].tensor, change.index)
    for reader in facts.calls[place + 1 : place + 1 + _MAX_CALLS] if names else ():
        at = facts.span(reader.site)
        if at is None or at.file != span.file or function_around(facts, at.file, at.line) is not function:
            continue
        if (at.line, at.column) == (span.line, span.column) and at.end_column == span.end_column:
            continue  # a layer of the same module
        if at.line < span.line:
            return None  # the next round of a loop, or the next call of the function
        known = [name for name in names if not _is_set_between(function, name, span.line, at.line)]
        read = [name for name in known if _reads(facts.names.syntax.node(at), name, node)]
        if read and any(facts.storage_of(access.tensor, reader.index) == storage for access in reader.inputs):
            return ChangedArgument(change, reader, read[0], _made(facts, span))
    return None


def _says_so(node: ast.Call) -> bool:
    """Returns whether the call itself says that it changes its argument, as `x.relu_()` does."""
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    return name.endswith("_") or any(keyword.arg == "inplace" for keyword in node.keywords)


def _names(function: ast.FunctionDef | ast.AsyncFunctionDef, call: ast.Call) -> list[str]:
    """Returns the variables of a function that are the argument of a call."""
    if len(call.args) != 1 or not isinstance(call.args[0], ast.Name):
        return []
    names = [call.args[0].id]
    for node in ast.walk(function):
        if isinstance(node, ast.Assign) and node.lineno < call.lineno:
            if isinstance(node.value, ast.Name) and node.value.id == names[0]:
                names += [target.id for target in node.targets if isinstance(target, ast.Name)]
    return names


def _is_set_between(function: ast.FunctionDef | ast.AsyncFunctionDef, name: str, first: int, last: int) -> bool:
    """Returns whether a line of a function sets a variable, from one line to the one before another."""
    stored = (node for node in ast.walk(function) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store))
    return any(node.id == name and first <= node.lineno < last for node in stored)


def _reads(reader: ast.AST | None, name: str, call: ast.Call) -> bool:
    """Returns whether an expression reads a variable outside the call that has changed it."""
    inside = {id(node) for node in ast.walk(call)}
    nodes = ast.walk(reader) if reader is not None else ()
    return any(isinstance(node, ast.Name) and node.id == name and id(node) not in inside for node in nodes)


def _made(facts: TraceIndex, span: Span) -> Span | None:
    """Returns the only place of a file that says `inplace=True`."""
    found = [
        node
        for node in ast.walk(facts.tree(span.file))
        if isinstance(node, ast.Call)
        and any(
            keyword.arg == "inplace" and isinstance(keyword.value, ast.Constant) and keyword.value.value is True
            for keyword in node.keywords
        )
    ]
    lines = {node.lineno for node in found}
    return facts.span_of(found[0], span.file) if len(lines) == 1 else None
