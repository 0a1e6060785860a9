"""Finds calls of clipping that only measure the norm of gradients, as their bound is infinite or huge."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensorlens.analysis.naming.syntax import last_name
from tensorlens.analysis.per_trace import once_per_trace
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.written_numbers import written_number
from tensorlens.records.model import Trace

_HUGE = 1e6  # no gradient of a training run is that large
_MOST_NAMES = 2  # that lead to a number: `max_norm`, `self.max_norm`


def bounds_of(node: ast.Call) -> list[ast.expr]:
    """Returns the arguments of a call of clipping that bound the norm or the values."""
    return [*node.args[1:2], *(each.value for each in node.keywords if each.arg in ("max_norm", "clip_value"))]


def only_measures(facts: TraceIndex, site: int | None) -> bool:
    """Returns whether the bound of a line's call may be infinite or huge: as written, by a name, or by a default."""
    known = _known(facts.trace)
    if site not in known:
        node = None if site is None else facts.node_at(site)
        known[site] = isinstance(node, ast.Call) and any(_is_huge(facts, each, _MOST_NAMES) for each in bounds_of(node))
    return known[site]


@once_per_trace
def _known(trace: Trace) -> dict[int | None, bool]:
    """Returns where answers are kept: each step asks again, and an answer reads the whole source."""
    return {}


def _is_huge(facts: TraceIndex, bound: ast.expr, names: int) -> bool:
    for part in ast.walk(bound):
        if not isinstance(part, ast.expr):
            continue
        number = written_number(facts, part)
        if (number is not None and abs(number) >= _HUGE) or last_name(part) in ("inf", "Inf", "infty", "Infinity"):
            return True
        if names and isinstance(part, ast.Name | ast.Attribute):
            if any(_is_huge(facts, each, names - 1) for each in _values(facts, last_name(part))):
                return True
    return False


def _values(facts: TraceIndex, name: str) -> Iterator[ast.expr]:
    """Yields what the program gives a name: in assignments, as defaults of parameters, and as arguments by name."""
    for node in (node for _, tree in facts.trees() for node in ast.walk(tree)):
        is_set = isinstance(node, ast.Assign) and any(last_name(each) == name for each in node.targets)
        is_set |= isinstance(node, ast.AnnAssign) and last_name(node.target) == name
        value = getattr(node, "value", None)
        if (is_set or (isinstance(node, ast.keyword) and node.arg == name)) and isinstance(value, ast.expr):
            yield value
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from _defaults(node.args, name)
            places = [each.arg for each in node.args.args]
            if name in places:
                yield from _given(facts, node.name, places.index(name))


def _defaults(arguments: ast.arguments, name: str) -> Iterator[ast.expr]:
    placed = [*arguments.posonlyargs, *arguments.args]
    last = placed[len(placed) - len(arguments.defaults) :]
    pairs = [
        *zip(last, arguments.defaults, strict=True),
        *zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True),
    ]
    yield from (value for each, value in pairs if each.arg == name and value is not None)


def _given(facts: TraceIndex, function: str, place: int) -> Iterator[ast.expr]:
    """Yields the arguments at a place of the calls of a function; of a method, one place earlier."""
    for node in (node for _, tree in facts.trees() for node in ast.walk(tree)):
        if isinstance(node, ast.Call) and last_name(node.func) == function:
            yield from node.args[place : place + 1]
            yield from node.args[place - 1 : place] if place else ()
