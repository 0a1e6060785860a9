"""Names squares of gradients that are summed over passes, where the gradients themselves add up from pass to pass.

So it is with the importance of weights, as in elastic weight consolidation, if nothing clears the gradients in between.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.gradients.held_gradients import SAME, HeldGradient, adds_up, called_op, held_by
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.analysis.training.timeline import GRAD_READ
from tensorlens.analysis.written_numbers import written_number
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.diagnostics.shared.wording import as_written
from tensorlens.records.model import Call
from tensorlens.records.report import StandingOut

_JOINING = frozenset(("cat", "stack"))
_REDUCING = frozenset(("sum", "mean"))
_LEAVING = frozenset(("numpy", "from_numpy"))
_NEW = frozenset(("zero", "fill", "copy"))  # a sum begins anew
_MIN_RUNS = 4


@dataclass(frozen=True, slots=True)
class _Square:
    call: Call
    held: HeldGradient

    @property
    def at(self) -> int:
        return self.call.index if self.held.at is None else self.held.at


@dataclass(frozen=True, slots=True)
class _Found:
    """Maps tensors to what they hold."""

    held: dict[int, HeldGradient]
    squares: dict[int, _Square]
    joined: dict[int, list[_Square]]
    sums: dict[int | None, dict[int, _Square]]  # by memory and leaf: the square that was added last


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    facts, reported = training.facts, set[int]()
    runs: dict[tuple[int, int], list[_Square]] = defaultdict(list)  # by line and leaf
    for one, other in _added(facts):
        moments = training.training.moments.get(other.held.leaf, [])
        if one.held.leaf == other.held.leaf and adds_up(facts, moments, other.held.gradient, one.at, other.at):
            runs[other.call.site, other.held.leaf].append(other)
    for (site, leaf), squares in runs.items():
        if site not in reported and len(squares) + 1 >= _MIN_RUNS:
            reported.add(site)
            last, moments = squares[-1].call, training.training.moments.get(leaf, [])
            fills = [moment for moment in moments if moment.kind == "fill" and moment.index < last.index]
            yield stands_out(
                f"{as_written(facts, last)} squares the sum of the gradients of several passes, {len(squares):,} "
                "times: nothing clears them between one pass and the next, and the squares are added up",
                facts.label("accumulated_here", fills[-1].event.site, "adds to the gradient", fills[-1].index),
                facts.label("observed_here", site, "squares the sum", last.index),
            )


def _added(facts: TraceIndex) -> list[tuple[_Square, _Square]]:
    """Returns the pairs of squares of gradients, as they are or times a number, that are added one after the other to
    the same sum; none if an array may clear the gradients."""
    found, pairs = _Found({}, {}, {}, {}), list[tuple[_Square, _Square]]()
    for call in facts.calls:
        given, name = [access.tensor for access in call.inputs], called_op(call)
        if name in _LEAVING and given and given[0] in found.held:
            return []
        for write in call.writes if name in _NEW else ():
            found.sums.pop(facts.storage_of(write.tensor, call.index), None)
        if not given or not call.outputs or call.within:
            continue
        result = call.outputs[0].tensor
        if call.op == GRAD_READ:
            found.held[result] = HeldGradient(given[0], result, None)
        elif not any(number in each for number in given for each in (found.held, found.squares, found.joined)):
            continue
        elif name in _REDUCING and given[0] in found.joined:
            pairs += pairwise(found.joined[given[0]])
        elif name in _JOINING and all(number in found.squares for number in given):
            found.joined[result] = [found.squares[number] for number in given]
        elif name in ("add", "radd", "addcmul"):
            pairs += _summed(facts, call, found)
        elif (square := _square_of(facts, call, found)) is not None:
            found.squares[result] = square
        elif (copied := held_by(facts, call, found.held)) is not None:
            found.held[result] = copied
    return pairs


def _square_of(facts: TraceIndex, call: Call, found: _Found) -> _Square | None:
    """Returns the square that a call makes, or takes as it is or times a number or a tensor of one element."""
    given, name, held = [access.tensor for access in call.inputs], called_op(call), found.held
    old = [number for number in given if number in found.squares]
    if old:
        factors = [facts.tensor(number).shape for number in given if number not in found.squares]
        is_same = name in SAME and len(old) == 1 and all(size == 1 for shape in factors for size in shape)
        return found.squares[old[0]] if is_same else None
    one = held.get(given[0])
    is_square = name == "square" or (name == "pow" and len(given) == 1 and _is_square(facts, call))
    is_product = name == "mul" and len(given) == 2 and held.get(given[1]) == one
    return _Square(call, one) if one is not None and (is_square or is_product) else None


def _summed(facts: TraceIndex, call: Call, found: _Found) -> Iterator[tuple[_Square, _Square]]:
    """Notes the square that a call adds to a sum. Yields it with the square that was added before."""
    given, held = [access.tensor for access in call.inputs], found.held
    if called_op(call) == "addcmul":
        one = held.get(given[1]) if len(given) == 3 and held.get(given[1]) == held.get(given[2]) else None
        added, others = None if one is None else _Square(call, one), given[:1]
    else:
        added = next((found.squares[number] for number in given if number in found.squares), None)
        others = [number for number in given if number not in found.squares]
    if added is not None:
        sums, leaf = found.sums, added.held.leaf
        memories = {facts.storage_of(number, call.index) for number in others}
        before = [sums[memory][leaf] for memory in memories if leaf in sums.get(memory, ())]
        sums.setdefault(facts.storage_of(call.outputs[0].tensor, call.index), {})[leaf] = added
        yield from ((each, added) for each in before)


def _is_square(facts: TraceIndex, call: Call) -> bool:
    node = facts.node_at(call.site)
    given = [node.right] if isinstance(node, ast.BinOp) else node.args[-1:] if isinstance(node, ast.Call) else []
    return bool(given) and written_number(facts, given[0]) == 2
