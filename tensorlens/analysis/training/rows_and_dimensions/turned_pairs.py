"""Finds pictures and targets of the same places that are turned round by chance, each by a chance of its own."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice

from tensorlens.analysis.lineage import ancestry
from tensorlens.analysis.naming.syntax import last_name
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.repeated_seeds import DRAWS
from tensorlens.records.model import Backward, Call

TURNS = frozenset("flip fliplr flipud rot90".split())
_LAYERS = frozenset("conv1d conv2d conv3d linear".split())
_LOSSES = frozenset(
    "binary_cross_entropy_with_logits binary_cross_entropy cross_entropy nll_loss mse_loss l1_loss smooth_l1_loss "
    "huber_loss sub rsub mul rmul".split()
)
_KEEPING = frozenset(
    "to float long double half int contiguous clone detach unsqueeze squeeze cpu cuda add sub mul div truediv radd "
    "rsub rmul clamp iadd imul idiv itruediv view reshape type permute normal".split()
)
_GENERATORS = ("Generator", "set_state", "set_rng_state", "fork_rng")
_MIN_EACH, _MAX_STEPS, _MAX_ABOVE, _MAX_CALLS, _MAX_PASSES = 2, 12, 24, 600, 128


@dataclass(slots=True)
class TurnedPairs:
    """Counts pairs of which only the picture, only the target, both or none was turned."""

    data: int = 0
    target: int = 0
    both: int = 0
    none: int = 0
    turn: Call | None = None  # of a target
    other: Call | None = None  # of a picture


@dataclass(slots=True)
class _Turned:
    """The turn of one value, and the draws that choose the rows that it is for."""

    turn: Call | None = None
    draws: set[int] = field(default_factory=set)
    rows: bool = False  # it is for some rows only


@dataclass(frozen=True, slots=True)
class _Pair:
    data: int
    compared: Call  # with the prediction and the target
    start: int  # the pass before

    @property
    def target(self) -> int:
        return self.compared.inputs[1].tensor


def turned_pairs(facts: TraceIndex) -> Iterator[TurnedPairs]:
    """Yields the pairs of the run where each chance is seen: at least two pictures and two targets turned alone.

    Draws for the rows of a batch are compared as they are, if nothing may repeat them.
    """
    if not any(op_name(call) in TURNS for call in facts.calls):
        return
    found = TurnedPairs()
    for pair in islice(_pairs(facts), _MAX_PASSES):
        one, other = _items(facts, pair.data, pair.compared.index), _items(facts, pair.target, pair.compared.index)
        if len(one) != len(other) or not _is_of_data(facts, pair):
            continue
        for picture, wanted in zip(one, other, strict=True):
            if picture.draws and wanted.draws:
                draws = picture.draws | wanted.draws
                if not picture.draws & wanted.draws and not _repeats_draws(facts, min(draws)):
                    yield TurnedPairs(turn=wanted.turn, other=picture.turn)
                    return
            elif not picture.rows and not wanted.rows:
                _count(found, picture.turn, wanted.turn)
    if min(found.data, found.target) >= _MIN_EACH and min(found.both, found.none) > 0:
        yield found


def _count(found: TurnedPairs, picture: Call | None, wanted: Call | None) -> None:
    found.turn, found.other = wanted or found.turn, picture or found.other
    if picture is not None and wanted is not None:
        found.both += 1
    elif picture is not None:
        found.data += 1
    elif wanted is not None:
        found.target += 1
    else:
        found.none += 1


def _pairs(facts: TraceIndex) -> Iterator[_Pair]:
    """Yields what the first layer gets and what the loss compares its result with, once for each backward pass."""
    data, compared, start = None, None, 0
    for event in facts.events:
        if isinstance(event, Backward):
            if data is not None and compared is not None and event.op != "autograd.grad":
                yield _Pair(data, compared, start)
            data, compared, start = None, None, event.index
        elif isinstance(event, Call) and not event.within and len(event.inputs) > 1:
            first, second = event.inputs[0].tensor, event.inputs[1].tensor
            name = op_name(event)
            if data is None and name in _LAYERS and not facts.requires_grad(first, event.index):
                data = first
            elif data is not None and compared is None and name in _LOSSES:
                if facts.requires_grad(first, event.index) and not facts.requires_grad(second, event.index):
                    shapes = facts.tensor(data).shape, facts.tensor(second).shape
                    if len(shapes[1]) > 1 and shapes[0][:1] == shapes[1][:1] and shapes[0][-1:] == shapes[1][-1:]:
                        compared = event


def _is_of_data(facts: TraceIndex, pair: _Pair) -> bool:
    """Returns whether the prediction comes from the input, and the target from no layer that runs for this pass."""
    at = pair.compared.index
    above = islice(ancestry(facts, pair.compared.inputs[0].tensor, at), _MAX_CALLS)
    if not any(access.tensor == pair.data for _, made in above for access in made.inputs):
        return False
    wanted = islice(ancestry(facts, pair.target, at), _MAX_CALLS)
    return not any(op_name(made) in _LAYERS and made.index > pair.start for _, made in wanted)


def _items(facts: TraceIndex, number: int, before: int) -> list[_Turned]:
    """Returns the turns of a value, or those of the items that it was stacked of."""
    found = _Turned()
    for _ in range(_MAX_STEPS):
        made = next(iter(facts.producers(number, before)), None)
        name = "" if made is None else op_name(made)
        if made is None or not made.inputs:
            break
        if name == "stack" and found.turn is None:
            return [_items(facts, access.tensor, made.index)[0] for access in made.inputs]
        step = _step(facts, made, name, found)
        if step is None:
            break
        number, before = step, made.index
    return [found]


def _step(facts: TraceIndex, made: Call, name: str, found: _Turned) -> int | None:
    """Returns the input that a way goes on with, after it notes a turn."""
    if name in ("where", "setitem") and len(made.inputs) == 3:
        mask, value = (0, 1) if name == "where" else (1, 2)
        turn = _turn_of(facts, made.inputs[value].tensor, made.index)
        rest = made.inputs[2 if name == "where" else 0].tensor
        if turn is None and name == "where":
            turn, rest = _turn_of(facts, rest, made.index), made.inputs[1].tensor
        if turn is None:
            return None
        found.turn, found.rows = turn, True
        found.draws |= _draws(facts, made.inputs[mask].tensor, made.index)
        return rest
    if name in TURNS:
        found.turn = made
        return made.inputs[0].tensor
    return made.inputs[0].tensor if name in _KEEPING else None


def _turn_of(facts: TraceIndex, number: int, before: int) -> Call | None:
    made = next(iter(facts.producers(number, before)), None)
    return made if made is not None and op_name(made) in TURNS else None


def _draws(facts: TraceIndex, number: int, before: int) -> set[int]:
    """Returns the draws that a mask comes from; none if it comes from anything else, too."""
    above = [made for _, made in islice(ancestry(facts, number, before), _MAX_ABOVE)]
    drawn = {made.index for made in above if not made.inputs and op_name(made) in DRAWS}
    return drawn if len(drawn) == sum(not made.inputs for made in above) else set()


def _repeats_draws(facts: TraceIndex, first: int) -> bool:
    """Returns whether a seed is set after a draw, or the script has a generator of its own, which it may set back."""
    calls = (node for _, tree in facts.trees() for node in ast.walk(tree) if isinstance(node, ast.Call))
    is_later = any(each.index > first for each in facts.trace.inspection.seeds)
    return is_later or any(last_name(node.func) in _GENERATORS for node in calls)
