"""Finds a single number, as a temperature, that is fitted after training on the rows that the model was trained on.

The scores of these rows are surer than those of others, so the number that suits them does not suit others.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tensorlens.analysis.lineage import ancestry
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.loss_calls import loss_calls
from tensorlens.analysis.training.measured import MeasuredTraining, ParameterRow
from tensorlens.records.model import Backward, Call

_LOSSES = frozenset("cross_entropy nll_loss binary_cross_entropy_with_logits".split())
_QUOTIENTS = frozenset("div truediv".split())
_PARTS = frozenset("getitem unbind select split chunk narrow".split())
_CHOOSING = frozenset("getitem index_select gather take take_along_dim masked_select where embedding".split())
_MAX_CALLS, _LEAST_PASSES, _MOST_PASSES = 600, 2, 4


@dataclass(frozen=True, slots=True)
class FittedScale:
    """A single number that a later optimizer fits by a loss of the same kind, on the same tensors as the model."""

    row: ParameterRow
    loss: Call
    trained: Call  # the loss of the model
    data: int  # a tensor of both
    scored: Call  # the model run on other tensors


def fitted_scales(training: MeasuredTraining) -> Iterator[FittedScale]:
    """Yields these numbers."""
    facts = training.facts
    single = {row.tensor: row for row in training.rows if row.is_stepped and _is_single(facts, row.tensor)}
    passes = {number: [each for each in facts.backwards if _fills(each, number)] for number in single}
    for number, found in passes.items():
        if not found or any(change.tensor != number for each in found for change in each.gradients):
            continue
        before = [each for each in facts.backwards if each.index < found[0].index and each.op != "autograd.grad"]
        if not before or any(_fills(each, number) for each in before):
            continue
        fit, trained = _loss(facts, found[0]), _loss(facts, before[-1])
        if fit is None or trained is None or op_name(fit) != op_name(trained) or not _is_scaled(facts, fit, number):
            continue
        parameters = {change.tensor for each in before[-1:] for change in each.gradients}
        started = before[0].started
        own = _data(facts, fit, started, parameters)
        later = [each for each in facts.backwards if each.index > found[0].index]
        if not _above(facts, fit) & parameters or any(parameters & _filled(each) for each in later):
            continue  # scores of another model, or one that goes on training
        losses = [loss for each in before[1:][-_MOST_PASSES:] if (loss := _loss(facts, each)) is not None]
        learned = [_data(facts, loss, started, parameters, takes_parts=True) for loss in losses]
        known = [each for each in learned if each is not None]
        if len(fit.inputs) != 2 or any(facts.tensor(each.outputs[0].tensor).shape != () for each in (fit, trained)):
            continue  # weights may choose rows
        if own is None or len(known) < _LEAST_PASSES or not own or own != set.intersection(*known):
            continue  # an index of a batch differs from pass to pass
        scored = _scored(facts, found[-1].index, parameters, own, started)
        if scored is not None:
            yield FittedScale(single[number], fit, trained, min(own), scored)


def _is_single(facts: TraceIndex, number: int) -> bool:
    return all(size == 1 for size in facts.tensor(number).shape)


def _fills(backward: Backward, number: int) -> bool:
    return any(change.tensor == number and change.after is not None for change in backward.gradients)


def _filled(backward: Backward) -> set[int]:
    return {change.tensor for change in backward.gradients}


def _above(facts: TraceIndex, loss: Call) -> set[int]:
    """Returns the tensors that the scores of a loss were computed from."""
    return {number for number, _ in ancestry(facts, loss.inputs[0].tensor, loss.index, _MAX_CALLS)}


def _loss(facts: TraceIndex, backward: Backward) -> Call | None:
    return next((call for call in loss_calls(facts, backward) if op_name(call) in _LOSSES), None)


def _is_scaled(facts: TraceIndex, loss: Call, number: int) -> bool:
    """Returns whether the scores of a loss are a quotient of constants and what a number gives."""
    made = next(iter(facts.producers(loss.inputs[0].tensor, loss.index)), None)
    if made is None or op_name(made) not in _QUOTIENTS or len(made.inputs) != 2:
        return False
    trained = [facts.requires_grad(access.tensor, made.index - 1) for access in made.inputs]
    sizes = [_is_single(facts, access.tensor) for access in made.inputs]
    return sorted(trained) == [False, True] and sizes[trained.index(True)]


def _data(
    facts: TraceIndex, call: Call, started: int, parameters: set[int], *, takes_parts: bool = False
) -> set[int] | None:
    """Returns the tensors, made before training, that a call was computed from.

    None if plain numbers took some of their rows: it is not known which ones. So many rows as a tensor has are all.
    None also if an index or a mask chose some, except parts that an index of all rows takes, as they may be others.
    """
    is_part = False
    waiting, seen, found = [(access.tensor, call.index) for access in call.inputs], set[tuple[int, int]](), set[int]()
    for number, before in waiting:
        if len(seen) > _MAX_CALLS:
            return None
        tensor = facts.tensor(number)
        if number in parameters or tensor.type.endswith("Parameter") or (number, before) in seen:
            continue
        seen.add((number, before))
        made = next(iter(facts.producers(number, before)), None)
        if made is None or made.index < started:
            found.add(number)
            continue
        is_part |= op_name(made) in _PARTS and _takes_by_number(facts, made)
        if _chooses(facts, made) and not (takes_parts and _may_take_all(facts, made)):
            return None
        waiting += [(access.tensor, made.index) for access in made.inputs]
    rows = facts.tensor(call.inputs[0].tensor).shape[:1]
    is_whole = all(facts.tensor(number).shape[:1] == rows for number in found)
    return None if is_part and not is_whole and not takes_parts else found


def _chooses(facts: TraceIndex, made: Call) -> bool:
    """Returns whether an index or a mask may choose rows."""
    is_indexed = op_name(made) in _CHOOSING and len(made.inputs) > 1
    return is_indexed or any(facts.tensor(access.tensor).dtype == "bool" for access in made.inputs)


def _may_take_all(facts: TraceIndex, made: Call) -> bool:
    """Returns whether an index that chooses rows is a part of one with as many numbers as there are rows."""
    if op_name(made) not in ("getitem", "index_select") or len(made.inputs) != 2:
        return False
    rows, index = (facts.tensor(access.tensor) for access in made.inputs)
    cut = next(iter(facts.producers(index.id, made.index)), None)
    whole = facts.tensor(cut.inputs[0].tensor).shape if cut is not None and cut.inputs else ()
    return index.dtype != "bool" and whole == rows.shape[:1] != ()


def _takes_by_number(facts: TraceIndex, made: Call) -> bool:
    """Returns whether a call takes rows by plain numbers, of which it is not known which ones they are."""
    whole, part = (facts.tensor(each[0].tensor).shape for each in (made.inputs, made.outputs))
    return len(made.inputs) == 1 and part[:1] != whole[:1]


def _scored(facts: TraceIndex, since: int, parameters: set[int], own: set[int], started: int) -> Call | None:
    """Returns a call after the fit that runs the model on tensors that it was not trained on."""
    for call in facts.calls_between(since, facts.events[-1].index + 1):
        if not any(access.tensor in parameters for access in call.inputs) or call.within:
            continue
        data = _data(facts, call, started, parameters, takes_parts=True)
        if data and data.isdisjoint(own):
            return call
    return None
