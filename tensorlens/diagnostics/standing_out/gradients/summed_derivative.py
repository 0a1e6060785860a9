"""Names derivatives of several outputs that `autograd.grad()` has added up, and that meet each of the outputs."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.loss_calls import examined_passes, recorded_above
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.analysis.training.value_ranges import is_written_between
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.diagnostics.shared.wording import as_written, named
from tensorlens.records.model import Call
from tensorlens.records.report import StandingOut

_GRAD = "autograd.grad"
_ONES = frozenset(("ones_like", "ones", "new_ones"))
_MEETING = frozenset("add radd sub rsub mse_loss l1_loss smooth_l1_loss huber_loss".split())


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    facts, reported = training.facts, set[int]()
    for backward in examined_passes(facts):
        for call in recorded_above(facts, backward):
            for gradient in _gradients(facts, call) if op_name(call) in _MEETING and len(call.inputs) == 2 else ():
                if gradient.site in reported:
                    continue
                reported.add(gradient.site)
                outputs, inputs = (access.tensor for access in gradient.inputs[:2])
                shape, given = facts.tensor(outputs).shape, named(facts, inputs, gradient.index)
                yield stands_out(
                    f"{as_written(facts, gradient)} gives one derivative for each element of {given}, of shape "
                    f"{facts.tensor(inputs).shape}: the sum over the {shape[-1]} columns of "
                    f"{named(facts, outputs, gradient.index)}. {as_written(facts, call)} broadcasts it to all of them",
                    facts.label("value_made_here", gradient.site, "added up here", gradient.index),
                    facts.label("needed_here", call.site, "used for each column", call.index),
                )


def _gradients(facts: TraceIndex, call: Call) -> Iterator[Call]:
    """Yields the gradients of a sum over columns that a call broadcasts against as many columns."""
    one, other = (access.tensor for access in call.inputs)
    for number, whole in ((one, other), (other, one)):
        made = next(iter(facts.producers(number, call.index)), None)
        if made is None or made.op != _GRAD or not _adds_columns(facts, made):
            continue
        if facts.tensor(whole).shape == facts.tensor(made.inputs[0].tensor).shape:
            yield made


def _adds_columns(facts: TraceIndex, gradient: Call) -> bool:
    """Returns whether a call differentiates all columns of a tensor by the only column of another, with ones."""
    numbers = [access.tensor for access in gradient.inputs]
    if len(numbers) != 3 or len(gradient.outputs) != 1:
        return False
    outputs, inputs = (facts.tensor(number).shape for number in numbers[:2])
    made = next(iter(facts.producers(numbers[2], gradient.index)), None)
    is_sum = made is not None and op_name(made) in _ONES and facts.tensor(numbers[2]).shape == outputs
    if made is None or is_written_between(facts, numbers[2], made, gradient.index):
        return False
    return is_sum and len(outputs) == len(inputs) > 1 and outputs[:-1] == inputs[:-1] and outputs[-1] > inputs[-1] == 1
