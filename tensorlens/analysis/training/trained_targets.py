"""Finds targets of a loss that have a graph, as `reward + 0.9 * value(next_state)` has for the value of a state."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tensorlens.analysis.lineage import ancestry, graph_leaves
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name, trained_by
from tensorlens.analysis.training.loss_calls import ERRORS, examined_passes, is_error, recorded_above
from tensorlens.analysis.training.timeline import Training
from tensorlens.records.model import Backward, Call

_SUMS = frozenset(("add", "radd", "iadd"))
_DIFFERENCES = frozenset(("sub", "isub"))
_PRODUCTS = frozenset(("mul", "rmul", "imul", "div", "truediv"))
_SAME = frozenset("squeeze unsqueeze view reshape flatten clone float double to".split())
_MAX_PARTS = 16
_MAX_CALLS = 500


@dataclass(frozen=True, slots=True)
class _Part:
    """A term of a difference."""

    tensor: int
    before: int  # the event that uses it
    sign: int
    is_scaled: bool  # by a constant


@dataclass(frozen=True, slots=True)
class TrainedTarget:
    """A loss whose target has a graph."""

    error: Call
    target: int  # the value that the target is computed from
    made: Call  # what computed it
    parameters: tuple[int, ...]  # both sides of the difference are computed from them


def trained_targets(training: Training) -> Iterator[TrainedTarget]:
    """Yields these losses, one for each line.

    The target is a sum of data and of a value times a constant. Both that value and the one that it is compared with
    are computed from the same parameters, and neither from a gradient, as in an equation of physics.
    """
    reported: set[int] = set()
    for backward in examined_passes(training.facts):
        errors = [call for call in recorded_above(training.facts, backward) if is_error(call)]
        used = trained_by(training, backward) if errors else set[int]()
        for call in errors if used else ():
            found = _found(training.facts, call, used)
            if found is not None and call.site not in reported:
                reported.add(call.site)
                yield found


def _found(facts: TraceIndex, error: Call, used: set[int]) -> TrainedTarget | None:
    inputs = [access.tensor for access in error.inputs]
    if op_name(error) in ERRORS and len(inputs) == 2:
        sides = [_Part(inputs[0], error.index, 1, False), _Part(inputs[1], error.index, -1, False)]
    else:
        sides = [_Part(inputs[0], error.index, 1, False)]
    parts = _parts(facts, sides)
    graph = [part for part in parts if facts.requires_grad(part.tensor, part.before - 1)]
    data = [facts.tensor(part.tensor).shape for part in parts if part not in graph]
    if len(graph) != 2 or not any(shape and max(shape) > 1 for shape in data):
        return None
    value, target = sorted(graph, key=lambda part: part.is_scaled)
    if value.sign == target.sign or value.is_scaled or not target.is_scaled:
        return None
    leaves = [used & graph_leaves(facts, part.tensor, part.before) for part in (value, target)]
    made = next(iter(facts.producers(target.tensor, target.before)), None)
    if not leaves[0] or leaves[0] != leaves[1] or made is None or any(_has_gradient(facts, part) for part in graph):
        return None
    return TrainedTarget(error, target.tensor, made, tuple(sorted(leaves[1])))


def _parts(facts: TraceIndex, waiting: list[_Part]) -> list[_Part]:
    """Returns the terms that some sums and differences are made of."""
    found: list[_Part] = []
    for part in waiting:
        call = next(iter(facts.producers(part.tensor, part.before)), None)
        if not facts.requires_grad(part.tensor, part.before - 1) or call is None or len(waiting) > _MAX_PARTS:
            found.append(part)
            continue
        name, inputs = op_name(call), [access.tensor for access in call.inputs]
        recorded = [number for number in inputs if facts.requires_grad(number, call.index - 1)]
        if name in _SUMS or name in _DIFFERENCES or name in ("neg", "rsub"):
            signs = [1, -1 if name in _DIFFERENCES else 1] if name not in ("neg", "rsub") else [-1, 1]
            waiting += [
                _Part(number, call.index, part.sign * sign, part.is_scaled)
                for number, sign in zip(inputs, signs, strict=False)
            ]
        elif name in _PRODUCTS and len(recorded) == 1 and inputs.count(recorded[0]) == 1:
            waiting.append(_Part(recorded[0], call.index, part.sign, True))
        elif name in _SAME and recorded:
            waiting.append(_Part(recorded[0], call.index, part.sign, part.is_scaled))
        else:
            found.append(part)
    return found


def _has_gradient(facts: TraceIndex, part: _Part) -> bool:
    """Returns whether a value was computed from a gradient that a pass returned."""
    for _, call in ancestry(facts, part.tensor, part.before, _MAX_CALLS):
        if call.op == "autograd.grad" or isinstance(facts.event(call.index - 1), Backward):
            return True
    return False
