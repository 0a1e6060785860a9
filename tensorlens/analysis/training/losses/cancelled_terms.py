"""Finds terms that add one number to all scores of a row before a softmax over the row, which then cancels them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.loss_calls import examined_passes, recorded_above
from tensorlens.analysis.written_numbers import written_number
from tensorlens.records.model import Call

_SUMS = frozenset("add radd iadd sub rsub isub".split())
_SCALED = frozenset("mul rmul imul".split())
_DIVIDED = frozenset("div truediv idiv true_divide".split())
_SAME_SCORES = frozenset("float contiguous clone".split())
_SOFTMAX = frozenset(("softmax", "log_softmax"))
_LOWEST = re.compile(r"-\s*(torch|math|np|numpy)\.inf|(torch|np|numpy)\.finfo\(.*\)\.min")
_LOW = -1e8  # a score that a softmax makes 0, among scores of any usual size
_STEPS = 8  # calls between the sum and the softmax
_MAX_CALLS = 200  # looked at to see whether the term is computed from the scores


@dataclass(frozen=True, slots=True)
class CancelledTerm:
    """The sum of scores and a term, and the call that makes the softmax along dimension `dim` of the sum."""

    sum: Call
    term: int
    softmax: Call
    dim: int


def cancelled_terms(facts: TraceIndex) -> Iterator[CancelledTerm]:
    """Yields these terms, one for each line. A term that is computed from the scores, as their maximum, is meant."""
    reported: set[int] = set()
    for backward in examined_passes(facts):
        above = recorded_above(facts, backward)
        for softmax in above:
            dim, path = _softmax_dim(facts, softmax), [softmax]
            if dim is None:
                continue
            for call in _calls_before(facts, softmax):
                path.append(call)
                term = _term(facts, call, dim) if op_name(call) in _SUMS else None
                if term is not None and call.site not in reported and _is_used_once(above, path):
                    reported.add(call.site)
                    yield CancelledTerm(call, term, softmax, dim)


def _softmax_dim(facts: TraceIndex, call: Call) -> int | None:
    """Returns the dimension along which a call normalises, from the first; None if that is not known."""
    if not call.inputs:
        return None
    rank = len(facts.tensor(call.inputs[0].tensor).shape)
    if op_name(call) == "cross_entropy":
        return min(1, rank - 1) if rank else None
    if op_name(call) not in _SOFTMAX:
        return None
    written = _argument(facts, call, "dim")
    dim = None if isinstance(written, ast.Attribute) else written_number(facts, written)
    return int(dim) % rank if dim is not None and -rank <= dim < rank else None


def _argument(facts: TraceIndex, call: Call, name: str) -> ast.expr | None:
    """Returns the argument of a call that has a name, or else its last."""
    node = facts.node_at(call.site)
    if not isinstance(node, ast.Call):
        return None
    written = [each.value for each in node.keywords if each.arg == name] or node.args[-1:]
    return written[0] if written else None


def _calls_before(facts: TraceIndex, softmax: Call) -> Iterator[Call]:
    """Yields the calls before a softmax, the last first, that only move or scale each row of the scores or hide some
    of them."""
    scores, before = softmax.inputs[0].tensor, softmax.index
    for _ in range(_STEPS):
        call = next(iter(facts.producers(scores, before)), None)
        full = None if call is None else _full(facts, call)
        if call is None or full is None or not _keeps_softmax(facts, call, full):
            return
        yield call
        scores, before = full, call.index


def _keeps_softmax(facts: TraceIndex, call: Call, full: int) -> bool:
    """Returns whether a number added to all scores of a row before a call moves them alike after it."""
    name, others = op_name(call), [access.tensor for access in call.inputs if access.tensor != full]
    if len(call.inputs) - len(others) > 1 or any(_computed_from(facts, each, {full}, call.index) for each in others):
        return False
    if name in _SCALED or (name in _DIVIDED and call.inputs[0].tensor == full):
        return all(all(size == 1 for size in facts.tensor(each).shape) for each in others)
    if name == "masked_fill":
        value = _argument(facts, call, "value")
        number = written_number(facts, value)
        return number < _LOW if number is not None else value is not None and bool(_LOWEST.match(ast.unparse(value)))
    return name in _SUMS or name in _SAME_SCORES


def _is_used_once(above: tuple[Call, ...], path: list[Call]) -> bool:
    """Returns whether the loss uses the results on the path to a softmax, which is given first, for that alone."""
    results = {call.outputs[0].tensor for call in path[1:]}
    within = {call.index for call in path}
    return all(call.index in within for call in above if results & {access.tensor for access in call.inputs})


def _full(facts: TraceIndex, call: Call) -> int | None:
    """Returns the input of a call that has the shape of its result."""
    shape = facts.tensor(call.outputs[0].tensor).shape if call.outputs else None
    return next((each.tensor for each in call.inputs if facts.tensor(each.tensor).shape == shape), None)


def _term(facts: TraceIndex, call: Call, dim: int) -> int | None:
    """Returns the input of a sum that has one number for each row."""
    full = _full(facts, call)
    if full is None or len(call.inputs) != 2:
        return None
    shape = facts.tensor(full).shape
    term = next((access.tensor for access in call.inputs if access.tensor != full), None)
    if term is None:
        return None
    sizes = facts.tensor(term).shape
    padded = (1,) * (len(shape) - len(sizes)) + sizes
    is_of_rows = padded[dim] == 1 < shape[dim] and any(size > 1 for size in padded)
    sources = {full} | {access.tensor for made in facts.producers(full, call.index)[:1] for access in made.inputs}
    return term if is_of_rows and not _computed_from(facts, term, sources, call.index) else None


def _computed_from(facts: TraceIndex, number: int, sources: set[int], before: int) -> bool:
    """Returns whether a tensor is, or may be, computed from one of some others."""
    waiting, seen = [(number, before)], set[int]()
    for each, limit in waiting:
        if each in sources or len(seen) > _MAX_CALLS:
            return True
        for call in facts.producers(each, limit)[:1]:
            if call.index not in seen:
                seen.add(call.index)
                waiting += [(access.tensor, call.index) for access in call.inputs]
    return False
