"""Finds comparisons of answers (n, 1) with labels (n,) in an evaluation: each answer is compared with all labels.

An energy distance compares all pairs on purpose. It also compares the answers, or the labels, with themselves.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from tensorlens.analysis.lineage import ancestry
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.pair_tables import made_by, shape_of
from tensorlens.records.model import Call

_COMPARING = frozenset("eq ne sub rsub isub mse_loss l1_loss".split())
_ALIKE = frozenset(
    "gt ge lt le round sigmoid float long int double bool to detach clone cpu mul add sub div truediv exp "
    "clamp sign tanh".split()
)
_DISTANCES = frozenset(("cdist",))
_LAYERS = frozenset(("linear",))
_STEPS = frozenset("eq ne float double long int to abs pow square sub mul".split())
_REDUCING = frozenset("mean sum item".split())
_FOLDS = frozenset(
    "squeeze unsqueeze getitem view reshape flatten t T mT transpose permute expand expand_as repeat repeat_interleave "
    "detach clone contiguous cpu to float double".split()
)
_MOST_CALLS = 12
_MOST_ANCESTORS = 200
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
    reported, runs, meant = set[int](), Counter[int](), None
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
            meant = _scopes_of_pairs(facts) if meant is None else meant
            if facts.trace.sites[call.site].function in meant:
                continue
            reported.add(call.site)
            yield PairedAnswers(call, *pair, reduced)


def _pair(facts: TraceIndex, call: Call) -> tuple[int, int] | None:
    given = [access.tensor for access in call.inputs]
    for answers, labels in (given, given[::-1]):
        rows = shape_of(facts, labels)
        is_pair = len(rows) == 1 and rows[0] > 1 and shape_of(facts, answers) == (*rows, 1)
        layer = layer_of(facts, answers, call.index) if is_pair else None
        if layer is not None and not _descends(facts, labels, call.index, layer):
            return answers, labels
    return None


def _descends(facts: TraceIndex, labels: int, before: int, layer: Call) -> bool:
    """Returns whether labels are made of a result of the layer that gives the answers."""
    weights = {access.tensor for access in layer.inputs[1:]}
    above = islice(ancestry(facts, labels, before), _MOST_ANCESTORS)
    return any(op_name(made) in _LAYERS and weights & {each.tensor for each in made.inputs} for _, made in above)


def _scopes_of_pairs(facts: TraceIndex) -> set[str]:
    """Returns the functions in which a line compares each row of a tensor with all rows of the same one."""
    found = set[str]()
    for call in facts.calls:
        if op_name(call) not in _COMPARING | _DISTANCES or not call.inputs or len(call.outputs) != 1:
            continue
        shape = shape_of(facts, call.outputs[0].tensor)
        is_table = len(shape) > 1 and shape[-1] == shape[-2] > 1
        if is_table and len({_origin(facts, access.tensor, call.index) for access in call.inputs[:2]}) == 1:
            is_of_pairs = op_name(call) in _DISTANCES or len({access.tensor for access in call.inputs}) == 2
            found |= {facts.trace.sites[call.site].function} if is_of_pairs else set()
    return found


def _origin(facts: TraceIndex, number: int, before: int) -> int:
    """Returns the tensor that another one is a view or a copy of."""
    for _ in range(_MOST_CALLS):
        made = made_by(facts, number, before)
        if made is None or len(made.inputs) != 1 or op_name(made) not in _FOLDS:
            break
        number, before = made.inputs[0].tensor, made.index
    return number


def layer_of(facts: TraceIndex, number: int, before: int) -> Call | None:
    """Returns the layer that gives the answers their shape, unless the script does so for this comparison."""
    shape = shape_of(facts, number)
    for _ in range(_MOST_CALLS):
        made = made_by(facts, number, before)
        if made is None or not made.inputs:
            return None
        if op_name(made) in _LAYERS:
            return made
        if op_name(made) not in _ALIKE or shape_of(facts, made.inputs[0].tensor) != shape:
            return None
        number, before = made.inputs[0].tensor, made.index
    return None


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
