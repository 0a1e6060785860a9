"""Finds comparisons of answers (n, 1) with labels (n,) in an evaluation: each answer is compared with all labels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.pair_tables import made_by, shape_of
from tensorlens.records.model import Call

_COMPARING = frozenset("eq ne sub rsub isub mse_loss l1_loss".split())
_ALIKE = frozenset(
    "gt ge lt le round sigmoid float long int double bool to detach clone cpu mul add sub div truediv exp "
    "clamp sign tanh".split()
)
_LAYERS = frozenset(("linear",))
_STEPS = frozenset("eq ne float double long int to abs pow square sub mul".split())
_REDUCING = frozenset("mean sum item".split())
_MOST_CALLS = 12
_MOST_RUNS = 4  # of one line that are looked at


@dataclass(frozen=True, slots=True)
class PairedAnswers:
    """A comparison that makes a table of all pairs, and the call that reduces it to one number."""

    call: Call
    answers: int
    labels: int
    reduced: Call


def paired_answers(facts: TraceIndex) -> Iterator[PairedAnswers]:
    """Yields these calls, one for each line. The last dimension of the answers is that of a linear layer."""
    reported, runs = set[int](), Counter[int]()
    for place, call in enumerate(facts.calls):
        if op_name(call) not in _COMPARING or len(call.inputs) != 2 or len(call.outputs) != 1:
            continue
        runs[call.site] += 1
        if (
            call.site in reported
            or runs[call.site] > _MOST_RUNS
            or facts.requires_grad(call.outputs[0].tensor, call.index)
        ):
            continue
        pair = _pair(facts, call)
        reduced = _reduced(facts, call, facts.calls[place + 1 : place + 8]) if pair else None
        if pair and reduced is not None:
            reported.add(call.site)
            yield PairedAnswers(call, *pair, reduced)


def _pair(facts: TraceIndex, call: Call) -> tuple[int, int] | None:
    given = [access.tensor for access in call.inputs]
    for answers, labels in (given, given[::-1]):
        rows = shape_of(facts, labels)
        is_pair = len(rows) == 1 and rows[0] > 1 and shape_of(facts, answers) == (*rows, 1)
        if is_pair and _is_of_layer(facts, answers, call.index):
            return answers, labels
    return None


def _is_of_layer(facts: TraceIndex, number: int, before: int) -> bool:
    """Returns whether a layer gives the answers their shape, and not the script for this comparison."""
    shape = shape_of(facts, number)
    for _ in range(_MOST_CALLS):
        made = made_by(facts, number, before)
        if made is None or not made.inputs:
            return False
        if op_name(made) in _LAYERS:
            return True
        if op_name(made) not in _ALIKE or shape_of(facts, made.inputs[0].tensor) != shape:
            return False
        number, before = made.inputs[0].tensor, made.index
    return False


def _reduced(facts: TraceIndex, call: Call, later: list[Call]) -> Call | None:
    """Returns the call that reduces the table to one number, if nothing else uses it."""
    table, shape, found = {call.outputs[0].tensor}, shape_of(facts, call.outputs[0].tensor), None
    for each in later:
        if not table & {access.tensor for access in each.inputs}:
            continue
        made = [access.tensor for access in each.outputs]
        if op_name(each) in _REDUCING and all(shape_of(facts, number) == () for number in made):
            found = found or each
        elif op_name(each) in _STEPS and all(shape_of(facts, number) == shape for number in made):
            table |= set(made)
        else:
            return None
    return found
