"""Finds a gradient that a custom `backward` sums over all dimensions, where `forward` only broadcast the input."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass

from tensorlens.analysis.code_around import function_around, statement_at
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.user_callbacks import CallbackRun, last_run_that_returned
from tensorlens.records.model import Call, Span
from tensorlens.records.report import Edit

_MESSAGE = re.compile(r"invalid gradient at index (\d+) - got \[\] but expected shape compatible with \[([\d, ]+)\]")
_BROADCASTING = re.compile(r"(?:Tensor|torch)\.(?:__r?)?(?:add|sub|mul|div|truediv|rsub)(?:__)?$")


@dataclass(frozen=True, slots=True)
class SummedGradient:
    """The call of `sum()` in a `backward`, and the edit that sums only over the dimensions that `forward` added."""

    site: int
    edit: Edit


def summed_gradient(facts: TraceIndex, index: int, message: str) -> SummedGradient | None:
    """Finds the `sum()` without arguments whose result the `backward` that ran last returned for an input."""
    found, callback = _MESSAGE.search(message), last_run_that_returned(facts, index)
    if found is None or callback is None or callback.returned is None:
        return None
    position, shape = int(found[1]), tuple(map(int, found[2].split(",")))
    node, file = _sum_of(facts, facts.trace.sites[callback.returned].span, position), _file(facts, callback)
    if node is None:
        return None
    place = facts.span_of(node, file)
    calls = [c for c in facts.calls if c.op.endswith(".sum") and facts.trace.sites[c.site].span == place]
    shapes = {facts.tensor(call.inputs[0].tensor).shape for call in calls if call.inputs}
    if len(shapes) != 1:
        return None
    wide = tuple(next(iter(shapes)))
    added = len(wide) - len(shape)
    if added < 1 or wide[added:] != shape or not _is_only_broadcast(facts, callback, shape, wide):
        return None
    dims = "0" if added == 1 else f"({', '.join(map(str, range(added)))})"
    end = Span(file, place.end_line, place.end_column - 1, place.end_line, place.end_column - 1)
    return SummedGradient(calls[0].site, Edit(end, dims))


def _file(facts: TraceIndex, callback: CallbackRun) -> str:
    return "" if callback.returned is None else facts.trace.sites[callback.returned].span.file


def _sum_of(facts: TraceIndex, returned: Span, position: int) -> ast.Call | None:
    """Returns the only `sum()` in the expression that is returned at a position, or that its name is assigned to."""
    statement = statement_at(facts, returned.file, returned.line)
    function = function_around(facts, returned.file, returned.line)
    value = statement.value if isinstance(statement, ast.Return) else None
    parts = value.elts if isinstance(value, ast.Tuple) else [value]
    part = parts[position] if position < len(parts) else None
    if isinstance(part, ast.Name) and function is not None:
        stores = [n for n in ast.walk(function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
        made = [n for n in ast.walk(function) if isinstance(n, ast.Assign) and _is_name(n.targets, part.id)]
        is_once = sum(node.id == part.id for node in stores) == 1 and len(made) == 1
        part = made[0].value if is_once else None
    calls = [node for node in ast.walk(part) if isinstance(node, ast.Call)] if part is not None else []
    sums = [c for c in calls if isinstance(c.func, ast.Attribute) and c.func.attr == "sum"]
    one = sums[0] if len(sums) == 1 and not sums[0].args and not sums[0].keywords else None
    is_last = one is part or (isinstance(part, ast.UnaryOp) and part.operand is one)
    return one if is_last else None


def _is_name(targets: list[ast.expr], name: str) -> bool:
    return len(targets) == 1 and isinstance(targets[0], ast.Name) and targets[0].id == name


def _is_only_broadcast(facts: TraceIndex, callback: CallbackRun, shape: tuple[int, ...], wide: tuple[int, ...]) -> bool:
    """Returns whether every run of `forward` only added, multiplied or divided the input of a shape, as one of the
    wider shape."""
    name = callback.function.name.rpartition(".")[0]
    applied = [call for call in facts.calls if call.op == f"{name}.apply"]
    inside = [
        call
        for call in facts.calls
        if facts.trace.sites[call.site].function.endswith(f"{name}.forward") and not call.op.startswith("ctx.")
    ]
    used = False
    for call in applied:
        narrow = [access.tensor for access in call.inputs if tuple(facts.tensor(access.tensor).shape) == shape]
        if len(narrow) != 1:
            return False
        for each in inside:
            if narrow[0] in {access.tensor for access in each.inputs}:
                used = True
                if not _BROADCASTING.match(each.op) or not _has_shape(facts, each, wide):
                    return False
    return used


def _has_shape(facts: TraceIndex, call: Call, shape: tuple[int, ...]) -> bool:
    return len(call.outputs) == 1 and tuple(facts.tensor(call.outputs[0].tensor).shape) == shape
