"""Finds recurrent layers that begin with the state that another batch has left, where a shuffle chooses the rows."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from tensorlens.analysis.code_around import loop_around_line
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.loss_calls import examined_passes, recorded_above
from tensorlens.analysis.training.row_starts import COLLATED
from tensorlens.analysis.training.shuffled_cumulations import shuffled_rows
from tensorlens.records.model import Call

_LAYERS = frozenset("lstm gru rnn_tanh rnn_relu".split())
_CELLS = frozenset("lstm_cell gru_cell rnn_tanh_cell rnn_relu_cell".split())
_SAME = frozenset("detach clone contiguous to float".split())
_CUTS = frozenset("getitem narrow select".split())
_MAX_CALLS = 6
_Rows = tuple[Call, Call]  # the call that takes or puts together rows, and the one that draws their order


@dataclass(frozen=True, slots=True)
class StateOfOthers:
    """A call of a recurrent layer, the call that hands the state on, and those that take and draw the rows."""

    layer: Call
    handed: Call
    taken: Call
    drawn: Call


def states_of_others(facts: TraceIndex) -> Iterator[StateOfOthers]:
    """Yields these calls, one for each line."""
    reported: set[int] = set()
    for backward in examined_passes(facts):
        for call in recorded_above(facts, backward):
            if op_name(call) in _LAYERS | _CELLS and call.site not in reported:
                found = _found(facts, call)
                if found is not None:
                    reported.add(call.site)
                    yield found


def _found(facts: TraceIndex, call: Call) -> StateOfOthers | None:
    before = _layer_before(facts, call)
    axes = [_batch(facts, each) for each in (call, before[0])] if before else []
    if before is None or None in axes:
        return None
    now, earlier = (shuffled_rows(facts, each, axis or 0) for each, axis in zip((call, before[0]), axes, strict=True))
    if now is None or earlier is None or now[0] is earlier[0]:
        return None
    are_others = (_is_next_batch if _is_collated(now[0]) else _are_next_rows)(facts, now, earlier, (before[0], call))
    return StateOfOthers(call, before[1], *now) if are_others else None


def _is_next_batch(facts: TraceIndex, now: _Rows, earlier: _Rows, runs: tuple[Call, Call]) -> bool:
    """Returns whether a loader has put a batch together after the layer has run over the one before: the parts of one
    batch are there before the layer runs."""
    return _is_collated(earlier[0]) and now[0].site == earlier[0].site and now[0].index > runs[0].index


def _are_next_rows(facts: TraceIndex, now: _Rows, earlier: _Rows, runs: tuple[Call, Call]) -> bool:
    """Returns whether an index takes other rows of the same data than the one before.

    A line may draw, or cut off, the same rows again: for other data, or for other steps of the same rows.
    """
    taken = now[0], earlier[0]
    if any(len(each.inputs) != 2 or _is_collated(each) for each in taken):
        return False
    data, indices = zip(*((each.inputs[0].tensor, each.inputs[1].tensor) for each in taken), strict=True)
    if len(set(data)) > 1 or len(set(indices)) == 1:
        return False
    if now[1] is not earlier[1]:
        return now[1].site == earlier[1].site and now[1].index > runs[0].index
    one, other = (_cut(facts, each) for each in taken)
    if one is None or other is None:
        return one is other and facts.creator(indices[0]) is facts.creator(indices[1])  # parts of one split
    is_again = one.site == other.site and one.index > runs[0].index
    return is_again and _changes_in_loop(facts, one) and not _ran_between(facts, *runs)


def _is_collated(call: Call) -> bool:
    return op_name(call) in COLLATED


def _cut(facts: TraceIndex, taken: Call) -> Call | None:
    """Returns the call that cuts an index from all that were drawn, if it is a slice."""
    if facts.trace.sites[taken.site].through or len(taken.inputs) < 2:  # a loader takes other rows each time
        return None
    number, before = taken.inputs[1].tensor, taken.index
    for _ in range(_MAX_CALLS):
        made = next(iter(facts.producers(number, before)), None)
        if made is None or not made.inputs or op_name(made) in _CUTS:
            return made if made is not None and made.inputs else None
        number, before = made.inputs[0].tensor, made.index
    return None


def _changes_in_loop(facts: TraceIndex, cut: Call) -> bool:
    """Returns whether the innermost loop around a slice moves it on: an outer one may go on to other rows, while the
    inner one takes these again."""
    span, node = facts.span(cut.site), facts.node_at(cut.site)
    loop = None if span is None else loop_around_line(facts, span.file, span.line)
    if (
        loop is None
        or node is None
        or any(isinstance(each, ast.Lambda) and _holds(each, node) for each in ast.walk(loop))
    ):
        return False  # a function may take the same rows of other data
    names, stored = _names(node), set[str]()
    for each in ast.walk(loop):
        if isinstance(each, ast.Assign) and any(_names(target) & names for target in each.targets):
            names |= _names(each.value)
        elif isinstance(each, ast.AugAssign) and isinstance(each.target, ast.Name):
            stored.add(each.target.id)
    return bool(names & (stored | (_names(loop.target) if isinstance(loop, ast.For) else set())))


def _holds(around: ast.AST, node: ast.AST) -> bool:
    return any(each is node for each in ast.walk(around))


def _names(node: ast.AST) -> set[str]:
    return {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}


def _ran_between(facts: TraceIndex, first: Call, last: Call) -> bool:
    """Returns whether the layer runs between two of its calls, as where each batch keeps a state of its own."""
    weights = {access.tensor for access in last.inputs if facts.tensor(access.tensor).type == "Parameter"}
    between = facts.calls_between(first.index + 1, last.index - 1)
    return any(op_name(each) == op_name(last) and weights & {a.tensor for a in each.inputs} for each in between)


def _layer_before(facts: TraceIndex, call: Call) -> tuple[Call, Call] | None:
    """Returns the earlier call of the same layer whose state a call begins with, and the call that hands it on."""
    number, before, handed = call.inputs[1].tensor, call.index, None
    weights = {access.tensor for access in call.inputs if facts.tensor(access.tensor).type == "Parameter"}
    for _ in range(_MAX_CALLS):
        made = next(iter(facts.producers(number, before)), None)
        if made is None or not made.inputs:
            return None
        if op_name(made) == op_name(call):
            is_same = weights <= {access.tensor for access in made.inputs}
            states = [access.tensor for access in made.outputs[0 if op_name(call) in _CELLS else 1 :]]
            return (made, handed or made) if is_same and weights and number in states else None
        if op_name(made) not in _SAME and made.op != "Tensor.data.__get__":
            return None
        number, before, handed = made.inputs[0].tensor, made.index, made
    return None


def _batch(facts: TraceIndex, call: Call) -> int | None:
    """Returns the dimension of the rows in what a layer is given; None if that is not clear."""
    given, state = (facts.tensor(access.tensor).shape for access in call.inputs[:2])
    if op_name(call) in _CELLS:
        return 0 if len(given) == 2 else None
    is_clear = len(given) == len(state) == 3 and given[:2].count(state[1]) == 1
    return given.index(state[1]) if is_clear else None
