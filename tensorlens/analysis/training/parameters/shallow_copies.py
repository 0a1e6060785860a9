"""Finds shallow copies of modules that the program takes for modules of their own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tensorlens.analysis.lineage import ancestry, calls_reached_by
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.parameters.kept_results import is_kept
from tensorlens.analysis.training.timeline import Training
from tensorlens.records.model import Backward, Call
from tensorlens.records.observations import Step
from tensorlens.records.training_values import ShallowCopy

_FORWARD = frozenset(
    "linear conv1d conv2d conv3d conv_transpose1d conv_transpose2d embedding bilinear matmul rmatmul mm bmm addmm "
    "einsum layer_norm batch_norm lstm gru".split()
)
_MAX_PASSES = 20


@dataclass(frozen=True, slots=True)
class TakenForTwo:
    """A shallow copy of a module, and what the program does with its parameters as if they were two."""

    copy: ShallowCopy
    constant: Call | None  # a call that reads a parameter, and whose result the loss takes as a constant
    trained: Backward | Step  # the pass or the step that trains the same parameters


def taken_for_two(training: Training) -> Iterator[TakenForTwo]:
    """Yields these copies, each line once."""
    facts, seen = training.facts, set[int]()
    for copy in facts.trace.inspection.shallow_copies:
        parameters = training.stepped.intersection(copy.parameters)
        if copy.site in seen or not parameters:
            continue
        found = _target(facts, copy, parameters) or _snapshot(training, copy, parameters)
        if found is not None:
            seen.add(copy.site)
            yield found


def _target(facts: TraceIndex, copy: ShallowCopy, parameters: set[int]) -> TakenForTwo | None:
    """Finds a loss that takes a result of the module as a constant and trains the module."""
    later = [each for each in facts.backwards if each.index > copy.index and not each.failed]
    for backward in {each.index: each for each in (*later[:_MAX_PASSES], *later[-_MAX_PASSES:])}.values():
        if not parameters & {change.tensor for change in backward.gradients}:
            continue
        reached = calls_reached_by(facts, backward)
        begin = max([copy.index, *(each.index for each in facts.backwards if each.index < backward.index)])
        above = (call for root in backward.roots for _, call in ancestry(facts, root.tensor, backward.index))
        runs = {call.index: call for call in above if call.index >= begin and _runs(call, parameters)}
        constant = next((call for index, call in sorted(runs.items()) if index not in reached.calls), None)
        if reached.complete and constant is not None and runs.keys() & reached.calls:
            return TakenForTwo(copy, constant, backward)
    return None


def _runs(call: Call, parameters: set[int]) -> bool:
    """Returns whether a call computes a result of a module from a parameter and an input."""
    return op_name(call) in _FORWARD and not call.within and any(a.tensor in parameters for a in call.inputs)


def _snapshot(training: Training, copy: ShallowCopy, parameters: set[int]) -> TakenForTwo | None:
    """Finds the next step of the parameters, if the program keeps the copy as it is after some steps."""
    steps = [step for step in training.steps if _uses_gradients(step, parameters)]
    before = any(step.index < copy.index for step in steps)
    after = next((step for step in steps if step.index > copy.index), None)
    if not before or after is None or not is_kept(training.facts, copy.site):
        return None
    return TakenForTwo(copy, None, after)


def _uses_gradients(step: Step, parameters: set[int]) -> bool:
    pairs = zip(step.parameters, step.gradients, strict=True)
    return any(number in parameters and gradient is not None for number, gradient in pairs)
