"""Finds targets of a loss such as `reward + 0.9 * value(next_state)`: those that have a graph, and those that are
computed from a copy of the trained parameters that nothing moves after them.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from tensorlens.analysis.code_around import function_around
from tensorlens.analysis.lineage import ancestry, graph_leaves
from tensorlens.analysis.naming.syntax import last_name
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name, trained_by
from tensorlens.analysis.training.loss_calls import ERRORS, examined_passes, is_error, recorded_above
from tensorlens.analysis.training.timeline import Training
from tensorlens.records.model import Backward, Call

_SUMS = frozenset(("add", "radd", "iadd"))
_DIFFERENCES = frozenset(("sub", "isub"))
_PRODUCTS = frozenset(("mul", "rmul", "imul", "div", "truediv"))
_ALIKE = _SUMS | _DIFFERENCES | _PRODUCTS | frozenset("clone detach contiguous float double to clamp dropout".split())
_SAME = frozenset("squeeze unsqueeze view reshape flatten clone float double to".split())
_PICKED = frozenset(("gather", "take_along_dim", "max", "amax"))
_REWARDS = re.compile(r"(?<![a-z])(rewards?|rews?|dones?|terminated|td_?(error|target)s?)(?![a-z])", re.IGNORECASE)
_DISCOUNTS, _REWARD = re.compile(r"(?<![a-z])(gamma|discount)(?![a-z])", re.IGNORECASE), re.compile("r|r_t|rs")
_MAX_PARTS = 16
_MAX_CALLS = 500
_COPYING = frozenset(("clone", "detach", "get", "copy", "Parameter"))
_FLOATS = ("float", "bfloat", "complex")
_MAX_COPY = 4  # calls between a parameter and its copy


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


@dataclass(frozen=True, slots=True)
class FixedTarget:
    """A loss whose target is computed from a copy of what the loss trains, as it was before the first step."""

    error: Call
    made: Call  # the value that the target is computed from
    copies: tuple[int, ...]
    originals: tuple[int, ...]


def fixed_targets(training: Training) -> Iterator[FixedTarget]:
    """Yields these losses, one for each line. Whether a line changes the copy later is for the caller to see."""
    reported: set[int] = set()
    for backward in examined_passes(training.facts):
        errors = [call for call in recorded_above(training.facts, backward) if is_error(call)]
        used = trained_by(training, backward) if errors else set[int]()
        for call in errors if used else ():
            found = _fixed(training, call, used) if call.site not in reported else None
            if found is not None:
                reported.add(call.site)
                yield found


def _fixed(training: Training, error: Call, used: set[int]) -> FixedTarget | None:
    facts = training.facts
    parts = _parts(facts, _sides(error), follows_all=True)
    graph = [part for part in parts if facts.requires_grad(part.tensor, part.before - 1)]
    leaves = set[int]().union(*(used & graph_leaves(facts, part.tensor, part.before) for part in graph))
    for part in parts if leaves else ():
        made = next(iter(facts.producers(part.tensor, part.before)), None)
        if part in graph or not part.is_scaled or made is None or len(facts.tensor(part.tensor).shape) == 0:
            continue
        numbers = _parameters(training, part)
        originals = {original for each in numbers if (original := _copied_from(facts, each)) is not None}
        are_copies = all(_copied_from(facts, each) in leaves for each in numbers)
        if not numbers or numbers & used or not are_copies or not _stay_in_use(training, numbers):
            continue
        if not _is_reference(facts, part, numbers, [(each, leaves) for each in graph]):
            return FixedTarget(error, made, tuple(sorted(numbers)), tuple(sorted(originals)))
    return None


def _is_reference(facts: TraceIndex, part: _Part, copies: set[int], graph: list[tuple[_Part, set[int]]]) -> bool:
    """Returns whether a copy gets the data that the trained model gets, as a teacher or a reference policy does, which
    stays as it was on purpose. What a target is computed from is the value of something else, as of the next state."""
    own = _data(facts, part, copies)
    return any(own & _data(facts, each, leaves) for each, leaves in graph)


def _data(facts: TraceIndex, part: _Part, parameters: set[int]) -> set[int]:
    """Returns the data that calls take together with parameters, or with what they computed, and what the data was
    computed from element by element, as by the addition of noise."""
    calls = {call.index: call for _, call in ancestry(facts, part.tensor, part.before, _MAX_CALLS)}
    reached, found = set(parameters), list[tuple[int, int]]()
    for _, call in sorted(calls.items()):
        inputs = [access.tensor for access in call.inputs if facts.tensor(access.tensor).shape]
        if reached & set(inputs):
            reached |= {access.tensor for access in call.outputs}
            found += [(number, call.index) for number in inputs if number not in reached]
    for number, before in found:
        made = next(iter(facts.producers(number, before)), None)
        if made is not None and op_name(made) in _ALIKE and len(found) < _MAX_CALLS:
            found += [(access.tensor, made.index) for access in made.inputs]
    return {number for number, _ in found}


def _parameters(training: Training, part: _Part) -> set[int]:
    """Returns the parameters that a value is computed from, and the copies of some that are no parameters, made before
    the first step. What a model has chosen, as the action that led to a state, does not count."""
    facts, first = training.facts, training.steps[0].index if training.steps else 0
    found, waiting, seen = set[int](), [(part.tensor, part.before)], set[int]()
    for number, before in waiting:
        if facts.tensor(number).type.endswith("Parameter"):
            found.add(number)
            continue
        call = next(iter(facts.producers(number, before)), None)
        is_copy = call is not None and op_name(call) == "clone" and call.index < first
        if is_copy and _copied_from(facts, number) is not None:
            found.add(number)
        elif call is not None and call.index not in seen and len(seen) < _MAX_CALLS:
            seen.add(call.index)
            inputs = (access.tensor for access in call.inputs)
            waiting += [(each, call.index) for each in inputs if facts.tensor(each).dtype.startswith(_FLOATS)]
    return found


def _copied_from(facts: TraceIndex, number: int) -> int | None:
    """Returns the parameter whose values another one was made with, or was given by `load_state_dict()`."""
    end = facts.events[-1].index + 1
    for made in facts.producers(number, end):
        sources = [access.tensor for access in made.inputs if access.tensor != number]
        for _, call in islice(ancestry(facts, sources[0], made.index), _MAX_COPY) if sources else ():
            if op_name(call) not in _COPYING or not call.inputs:
                break
            if facts.tensor(call.inputs[0].tensor).type.endswith("Parameter"):
                return call.inputs[0].tensor
    return None


def _stay_in_use(training: Training, numbers: set[int]) -> bool:
    """Returns whether calls read tensors in the last tenth of the steps, too: others may have taken their place."""
    steps = training.steps
    since = steps[-1 - max(1, len(steps) // 10)].index if len(steps) > 1 else 0
    late = {access.tensor for call in training.facts.calls_between(since) for access in call.inputs}
    return numbers <= late


def _sides(error: Call) -> list[_Part]:
    """Returns the value and the target of a loss, or the difference that is squared."""
    inputs = [access.tensor for access in error.inputs]
    if op_name(error) in ERRORS and len(inputs) == 2:
        return [_Part(inputs[0], error.index, 1, False), _Part(inputs[1], error.index, -1, False)]
    return [_Part(inputs[0], error.index, 1, False)]


def _found(facts: TraceIndex, error: Call, used: set[int]) -> TrainedTarget | None:
    parts = _parts(facts, _sides(error))
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
    if not any(_is_picked(facts, part) for part in graph) and not _names_rewards(facts, error):
        return None
    return TrainedTarget(error, target.tensor, made, tuple(sorted(leaves[1])))


def _parts(facts: TraceIndex, waiting: list[_Part], follows_all: bool = False) -> list[_Part]:
    """Returns the terms that some sums and differences are made of, in values without a graph only if it
    `follows_all`."""
    found: list[_Part] = []
    for part in waiting:
        call = next(iter(facts.producers(part.tensor, part.before)), None)
        is_recorded = facts.requires_grad(part.tensor, part.before - 1)
        if not (is_recorded or follows_all) or call is None or len(waiting) > _MAX_PARTS:
            found.append(part)
            continue
        name, inputs = op_name(call), [access.tensor for access in call.inputs]
        recorded = [number for number in inputs if facts.requires_grad(number, call.index - 1) or not is_recorded]
        if name in _SUMS or name in _DIFFERENCES or name in ("neg", "rsub"):
            signs = [1, -1 if name in _DIFFERENCES else 1] if name not in ("neg", "rsub") else [-1, 1]
            waiting += [
                _Part(number, call.index, part.sign * sign, part.is_scaled)
                for number, sign in zip(inputs, signs, strict=False)
            ]
        elif name in _PRODUCTS and (len(recorded) == 1 or not is_recorded) and inputs.count(recorded[0]) == 1:
            waiting += [_Part(number, call.index, part.sign, True) for number in recorded]
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


def _is_picked(facts: TraceIndex, part: _Part) -> bool:
    """Returns whether a value is that of one action among several."""
    made = next(iter(facts.producers(part.tensor, part.before)), None)
    return made is not None and op_name(made) in _PICKED


def _names_rewards(facts: TraceIndex, error: Call) -> bool:
    """Returns whether a function that led to a loss names rewards, or the end of an episode. An equation of physics has
    a value times a constant on its other side, too."""
    for span in filter(None, map(facts.span, facts.call_chain(error.site))):
        function = function_around(facts, span.file, span.line)
        names = set(_names_in(function or facts.tree(span.file)))
        if any(map(_REWARDS.search, names)) or (
            any(map(_DISCOUNTS.search, names)) and any(map(_REWARD.fullmatch, names))
        ):
            return True
    return False


def _names_in(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
            yield str(node.slice.value)
        elif isinstance(node, ast.Name | ast.Attribute | ast.arg):
            yield node.arg if isinstance(node, ast.arg) else last_name(node)
