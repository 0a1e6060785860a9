"""Finds terms that add one number to all scores of a row before a softmax over the row, which then cancels them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from tensorlens.analysis.lineage import graph_leaves
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.loss_calls import examined_passes, recorded_above
from tensorlens.analysis.written_numbers import written_number
from tensorlens.records.model import Call

_SUMS = frozenset("add radd iadd sub rsub isub".split())
_SCALED = frozenset("mul rmul imul".split())
_DIVIDED = frozenset("div truediv idiv true_divide".split())
_HIDING = _SCALED | frozenset("where masked_fill full full_like fill nan_to_num log".split())
_SAME_SCORES = frozenset("float contiguous clone".split())
_SOFTMAX = frozenset(("softmax", "log_softmax"))
_LOWEST = re.compile(r"-\s*(torch|math|np|numpy)\.inf|(torch|np|numpy)\.finfo\(.*\)\.min")
_LOW = -1e8  # a score that a softmax makes 0, among scores of any usual size
_STEPS = 8  # calls between the sum and the softmax
_LARGE = 1e4  # a number that hides scores of any usual size
_MAX_CALLS = 200  # looked at to see what a term is computed from
_MAX_OF_SCORES = 2_000  # looked at to see what the scores are computed from
_FLOATS = ("float", "bfloat", "complex")


@dataclass(frozen=True, slots=True)
class CancelledTerm:
    """The sum of scores and a term, and the call that makes the softmax along dimension `dim` of the sum."""

    sum: Call
    term: int
    softmax: Call
    dim: int


def cancelled_terms(facts: TraceIndex) -> Iterator[CancelledTerm]:
    """Yields these terms, one for each line.

    A term is meant if it is computed from the scores, as their maximum, or from what they are computed from, as the
    squares in a distance that a product is a part of. One that hides whole rows leaves nothing of their scores.
    """
    found: dict[int, CancelledTerm] = {}
    meant: set[int] = set()
    for backward in examined_passes(facts):
        above = recorded_above(facts, backward)
        for softmax in above:
            dim, path = _softmax_dim(facts, softmax), [softmax]
            if dim is None:
                continue
            for call in _calls_before(facts, softmax):
                path.append(call)
                term = _term(facts, call, dim) if op_name(call) in _SUMS else None
                if term is None or call.site in meant:
                    continue
                if _is_meant(facts, call, term):
                    meant.add(call.site)
                elif _is_used_once(above, path):
                    found.setdefault(call.site, CancelledTerm(call, term, softmax, dim))
    yield from (each for site, each in found.items() if site not in meant)


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
    return term if is_of_rows else None


def _is_meant(facts: TraceIndex, call: Call, term: int) -> bool:
    """Returns whether the scores and a term of a sum are computed from the same values, or the term hides rows.

    A trained term may read the data of the scores, too: a bias of each row does.
    """
    full = _full(facts, call)
    made, own = _computed(facts, term, call.index, _MAX_CALLS)
    hides = any(facts.tensor(number).dtype == "bool" for number in own) and not any(map(_is_count, made))
    if full is None or len(made) >= _MAX_CALLS or hides or any(_is_large(facts, each) for each in made):
        return True
    _, of_scores = _computed(facts, full, call.index, _MAX_OF_SCORES)
    is_trained = bool(graph_leaves(facts, term, call.index))
    shared = [number for number in own & of_scores if facts.tensor(number).dtype.startswith(_FLOATS)]
    return any(not is_trained or facts.requires_grad(number, call.index - 1) for number in shared)


def _computed(facts: TraceIndex, number: int, before: int, most: int) -> tuple[list[Call], set[int]]:
    """Returns the calls that computed a tensor, at most some, and what they read. What has led to an index, as to an
    item that was drawn, does not count."""
    made, read, seen, waiting = list[Call](), {number}, set[int](), [(number, before)]
    for each, limit in waiting:
        call = next(iter(facts.producers(each, limit)), None)
        if call is None or call.index in seen or len(made) >= most:
            continue
        seen.add(call.index)
        made.append(call)
        read |= {access.tensor for access in call.inputs}
        floats = (access.tensor for access in call.inputs if facts.tensor(access.tensor).dtype.startswith(_FLOATS))
        waiting += [(source, call.index) for source in floats]
    return made, read


def _is_count(call: Call) -> bool:
    return op_name(call) in ("sum", "mean", "count_nonzero")


def _is_large(facts: TraceIndex, call: Call) -> bool:
    """Returns whether the source of a call has a number that leaves nothing of scores that it is added to."""
    node = facts.node_at(call.site) if op_name(call) in _HIDING else None
    parts = [each for each in ast.walk(node) if isinstance(each, ast.expr)] if isinstance(node, ast.expr) else []
    if any(isinstance(each, ast.Attribute) and each.attr in ("inf", "finfo", "min") for each in parts):
        return True
    numbers = (
        written_number(facts, each) for each in parts if isinstance(each, ast.Constant | ast.Name | ast.Attribute)
    )
    return any(number is not None and abs(number) >= _LARGE for number in numbers)


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
