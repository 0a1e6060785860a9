"""Finds sums along a batch, each over the rows before, where the rows are in the order of a shuffle.

A Cox loss takes its rows in the order of their times: the sum over the rows before is that over those at risk.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from math import prod

from tensorlens.analysis.lineage import ancestry
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.log_sums import is_of_logs
from tensorlens.analysis.training.loss_calls import examined_passes, recorded_above
from tensorlens.analysis.training.outside_draws import is_permuted_outside
from tensorlens.analysis.training.row_starts import Start, row_starts
from tensorlens.analysis.written_dimension import written_dimension
from tensorlens.records.model import Call

_DRAWING = frozenset(("randperm", "randint"))
_PARTS = frozenset("split chunk tensor_split narrow select unbind iter getitem view reshape flatten to detach flip "
                   "squeeze contiguous long cpu cuda".split())  # fmt: skip
_SAME_ROWS = frozenset("flip log add radd clamp clamp_min squeeze contiguous neg unsqueeze view reshape".split())
_DIFFERENCES = frozenset("sub rsub add radd isub".split())
_CHOOSING = frozenset("mul rmul imul getitem masked_select masked_fill where dot matmul rmatmul vdot inner".split())
_LOADING = "_BaseDataLoaderIter.__next__"
_SAMPLING = frozenset(("sampler", "batch_sampler", "collate_fn"))
_MIN_ROWS, _MAX_CALLS, _MAX_LATER = 3, 8, 40
_MAX_ABOVE = 20  # calls, from a mask to the order of its rows


@dataclass(frozen=True, slots=True)
class ShuffledCumulation:
    """A call that adds up rows, the call that puts the rows into their order, and the one that draws this order."""

    call: Call
    taken: Call
    drawn: Call


def shuffled_cumulations(facts: TraceIndex) -> Iterator[ShuffledCumulation]:
    """Yields these calls, one for each line, if a mask in the same order multiplies or chooses the sums."""
    seen = set[int]()
    for backward in examined_passes(facts):
        for call in recorded_above(facts, backward):
            name = op_name(call)
            if name not in ("logcumsumexp", "cumsum") or call.site in seen or not call.inputs:
                continue
            seen.add(call.site)
            if name == "logcumsumexp" or is_of_logs(facts, call):
                found = _shuffled(facts, call)
                if found is not None and _is_masked(facts, found):
                    yield found


def _shuffled(facts: TraceIndex, call: Call) -> ShuffledCumulation | None:
    axis = written_dimension(facts, call)
    found = None if axis is None else shuffled_rows(facts, call, axis)
    return None if found is None else ShuffledCumulation(call, *found)


def shuffled_rows(facts: TraceIndex, call: Call, axis: int) -> tuple[Call, Call] | None:
    """Returns the call that has put the rows of the first input of a call into their order, and the one that has drawn
    this order."""
    number = call.inputs[0].tensor
    shape = facts.tensor(number).shape
    if shape[axis] < _MIN_ROWS:
        return None
    starts = _unturned(facts, row_starts(facts, number, call.index, axis))
    draws = [_draw(facts, each, shape[axis]) for each in starts]
    if not starts or not all(draws) or starts[0].call is None or draws[0] is None:
        return None
    return starts[0].call, draws[0]


def _unturned(facts: TraceIndex, starts: list[Start]) -> list[Start]:
    """Replaces a `flip` by what it turns."""
    found: list[Start] = []
    for each in starts:
        is_turned = each.call is not None and op_name(each.call) == "flip"
        turned = each.call.inputs[0].tensor if each.call is not None and is_turned else None
        found += [each] if turned is None or each.call is None else row_starts(facts, turned, each.call.index)
    return found


def _draw(facts: TraceIndex, start: Start, rows: int) -> Call | None:
    """Returns the call that draws the order of rows: of an index, or of a loader that shuffles."""
    shape = facts.tensor(start.tensor).shape
    if start.call is None or shape[:1] != (rows,) or shape.count(rows) != 1:
        return None
    if start.is_collated:
        return draw_of_loader(facts, start.call)
    return draw_of_index(facts, start.call) if start.is_taken else None


def draw_of_index(facts: TraceIndex, taken: Call) -> Call | None:
    """Returns the call that draws the order in which another call takes rows by an index."""
    number = taken.inputs[1].tensor
    if len(facts.tensor(number).shape) != 1 or facts.tensor(number).dtype == "bool":
        return None
    for _ in range(_MAX_CALLS):
        made = facts.creator(number)
        if made is None or op_name(made) in _DRAWING or is_permuted_outside(facts, made):
            return made if made is not None and "sort" not in _text(facts, made) else None
        if op_name(made) not in _PARTS or len(made.inputs) != 1 or "sort" in _text(facts, made):
            return None
        number = made.inputs[0].tensor
    return None


def _text(facts: TraceIndex, call: Call) -> str:
    node = facts.node_at(call.site)
    return "" if node is None else ast.unparse(node)


def draw_of_loader(facts: TraceIndex, stacked: Call) -> Call | None:
    """Returns the `randperm` of the loader that puts a batch together, if no sampler or function of the program may
    put the rows into another order."""
    sites = facts.trace.sites
    if sites[stacked.site].through != _LOADING or _has_samplers(facts):
        return None
    calls = (call for call in facts.calls_between(0, stacked.index) if op_name(call) in _DRAWING)
    own = (call for call in calls if sites[call.site].through == _LOADING and facts.same_line(call.site, stacked.site))
    return next(own, None)


def _has_samplers(facts: TraceIndex) -> bool:
    nodes = (node for _, tree in facts.trees() for node in ast.walk(tree))
    return any(
        (isinstance(node, ast.keyword) and node.arg in _SAMPLING)
        or (isinstance(node, ast.FunctionDef) and node.name == "__getitems__")
        for node in nodes
    )


def _is_masked(facts: TraceIndex, found: ShuffledCumulation) -> bool:
    """Returns whether the sums meet, for each row, a constant that is in the same order, as the mask of events of a
    Cox loss: it multiplies or chooses them, or their difference from something else."""
    size, numbers = prod(facts.tensor(found.call.outputs[0].tensor).shape), {found.call.outputs[0].tensor}
    for later in islice(facts.calls_between(found.call.index + 1), _MAX_LATER):
        read = [access.tensor for access in later.inputs]
        if not numbers & set(read) or not later.outputs:
            continue
        others = [number for number in read if number not in numbers and prod(facts.tensor(number).shape) == size]
        plain = [number for number in others if not facts.requires_grad(number, later.index - 1)]
        if op_name(later) in _CHOOSING and any(_is_in_order(facts, each, later.index, found) for each in plain):
            return True
        if op_name(later) in _SAME_ROWS or (op_name(later) in _DIFFERENCES and others):
            numbers.add(later.outputs[0].tensor)
    return False


def _is_in_order(facts: TraceIndex, number: int, before: int, found: ShuffledCumulation) -> bool:
    """Returns whether the order that was drawn has given the rows of a tensor theirs, or the same loader has."""
    sites = facts.trace.sites
    is_loaded = sites[found.drawn.site].through == _LOADING
    for _, made in ancestry(facts, number, before, _MAX_ABOVE):
        is_same = facts.same_line(made.site, found.drawn.site)
        if made is found.drawn or (is_loaded and sites[made.site].through == _LOADING and is_same):
            return True
    return False
