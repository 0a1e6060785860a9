"""Finds losses of probabilities whose target has a graph, and so trains parameters of its own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tensorlens.analysis.lineage import ancestry, graph_leaves
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name, trained_by
from tensorlens.analysis.training.loss_calls import examined_passes, recorded_above
from tensorlens.analysis.training.timeline import Training
from tensorlens.records.model import Access, Backward, Call

_TO_TARGETS = frozenset(("kl_div", "cross_entropy", "binary_cross_entropy", "binary_cross_entropy_with_logits"))
_FLOATS = ("float", "bfloat", "complex")
_MAX_CALLS = 500


@dataclass(frozen=True, slots=True)
class TeacherTrained:
    """A loss whose target is computed from parameters that the input is not computed from, and trains them."""

    loss: Call
    made: Call  # what computed the target
    parameters: tuple[int, ...]


def teachers_trained(training: Training) -> Iterator[TeacherTrained]:
    """Yields the losses of probabilities with such a target, one for each line, unless another one of the pass goes the
    other way, as where two models teach each other, or something else of the pass trains these parameters, too, as the
    loss of a variational autoencoder whose prior is trained."""
    facts, reported = training.facts, set[int]()
    for backward in examined_passes(facts):
        calls = [call for call in recorded_above(facts, backward) if op_name(call) in _TO_TARGETS]
        used = trained_by(training, backward) if calls else set[int]()
        ways: list[tuple[Call, set[int], set[int]]] = []
        for call in calls if used else ():
            inputs = [access.tensor for access in call.inputs[:2]]
            if len(inputs) == 2 and all(facts.requires_grad(number, call.index - 1) for number in inputs):
                own, other = (used & graph_leaves(facts, number, call.index) for number in inputs)
                ways.append((call, own, other))
        for call, own, other in ways:
            made = next(iter(facts.producers(call.inputs[1].tensor, call.index)), None)
            is_mutual = any(each is not call and others & own for each, _, others in ways)
            if own and other and not own & other and not is_mutual and made is not None and call.site not in reported:
                if not _is_model(facts, call) or _trains_otherwise(facts, backward, call, other):
                    continue
                reported.add(call.site)
                yield TeacherTrained(call, made, tuple(sorted(other)))


def _is_model(facts: TraceIndex, loss: Call) -> bool:
    """Returns whether the target of a loss is computed from data. Labels may be parameters that are to be trained."""
    made = [each for _, each in ancestry(facts, loss.inputs[1].tensor, loss.index, _MAX_CALLS)]
    recorded = [each for each in made if is_recorded(facts, each)]
    numbers = {access.tensor for each in recorded for access in each.inputs if not _requires_grad(facts, access, each)}
    data = [facts.tensor(number) for number in numbers]
    return any(each.dtype.startswith(_FLOATS) and len(each.shape) > 1 for each in data)


def is_recorded(facts: TraceIndex, call: Call) -> bool:
    """Returns whether the result of a call has a graph; that of the call that makes a parameter has none."""
    numbers = [access.tensor for access in call.outputs[:1]]
    return any(
        facts.requires_grad(each, call.index) and not facts.is_leaf_requiring_grad(each, call.index) for each in numbers
    )


def _requires_grad(facts: TraceIndex, access: Access, call: Call) -> bool:
    return facts.requires_grad(access.tensor, call.index - 1)


def _trains_otherwise(facts: TraceIndex, backward: Backward, loss: Call, parameters: set[int]) -> bool:
    """Returns whether a pass trains the parameters of a target by other ways than the loss, or through a gradient."""
    own = {each.index: each for _, each in ancestry(facts, loss.inputs[1].tensor, loss.index, _MAX_CALLS)}
    results = {access.tensor for each in own.values() for access in each.outputs} | parameters
    results = {number for number in results if facts.requires_grad(number, loss.index - 1)}
    others = [each for each in recorded_above(facts, backward) if each.index not in own and each is not loss]
    return any(each.op == "autograd.grad" or results & {access.tensor for access in each.inputs} for each in others)
