"""Names losses over classes that are given several classes for one row, where an evaluation judges each by itself."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.loss_calls import examined_passes, recorded_above
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.analysis.training.value_ranges import made_as_zero_or_one
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.diagnostics.shared.wording import as_written
from tensorlens.records.model import Call
from tensorlens.records.report import StandingOut

_APART = frozenset("gt lt ge le bernoulli".split())  # elements that say nothing of others in their row
_SAME_VALUES = frozenset("view reshape squeeze unsqueeze contiguous float detach getitem cpu".split())
_MAX_DEPTH = 4


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    """Finds `cross_entropy(out, tags)` whose targets are compared or drawn one by one, and `sigmoid(out)`."""
    facts, seen = training.facts, set[int]()
    for backward in examined_passes(facts):
        for call in recorded_above(facts, backward):
            if op_name(call) != "cross_entropy" or call.site in seen or len(call.inputs) != 2:
                continue
            seen.add(call.site)
            made = _targets(facts, call)
            judged = None if made is None else _judged(facts, call)
            if made is not None and judged is not None:
                yield stands_out(
                    f"{as_written(facts, call)} computes the softmax of a row, as if it had one class, and is given "
                    f"zeros and ones of each class by itself; {as_written(facts, judged)} judges each class by itself",
                    facts.label("needed_here", call.site, "one class a row", call.index),
                    facts.label("value_made_here", made.site, "zeros and ones of each class", made.index),
                    facts.label("observed_here", judged.site, "each class by itself", judged.index),
                )


def _targets(facts: TraceIndex, loss: Call) -> Call | None:
    """Returns the call that compares or draws each element of the targets by itself."""
    scores, targets = (facts.tensor(access.tensor) for access in loss.inputs)
    if scores.shape != targets.shape or len(targets.shape) != 2 or targets.shape[1] < 2:
        return None
    made = made_as_zero_or_one(facts, loss.inputs[1].tensor, loss.index)
    if made is None or op_name(made) not in _APART or not made.outputs:
        return None
    if len(made.inputs) > 1:  # a row may have one value that is at least as great as its own maximum
        sizes = [facts.tensor(access.tensor).shape[-1:] for access in made.inputs]
        if any(size == (1,) for size in sizes):
            return None
    return made if facts.tensor(made.outputs[0].tensor).shape[-1:] == targets.shape[-1:] else None


def _judged(facts: TraceIndex, loss: Call) -> Call | None:
    """Returns a sigmoid of what the layer that made the scores makes."""
    scored = facts.creator(loss.inputs[0].tensor)
    weights = set[int]() if scored is None else _weights(facts, scored)
    if scored is None or not weights:
        return None
    results = {
        access.tensor
        for call in facts.calls
        if call.op == scored.op and _weights(facts, call) == weights
        for access in call.outputs
    }
    for call in facts.calls:
        if op_name(call) == "sigmoid" and _is_of(facts, call.inputs[0].tensor, call.index, results):
            return call
    return None


def _weights(facts: TraceIndex, call: Call) -> set[int]:
    return {a.tensor for a in call.inputs if facts.tensor(a.tensor).type.endswith("Parameter")}


def _is_of(facts: TraceIndex, number: int, before: int, results: set[int]) -> bool:
    """Returns whether a tensor is one of some, or has the same values as one."""
    for _ in range(_MAX_DEPTH):
        if number in results:
            return True
        made = next(iter(facts.producers(number, before)), None)
        if made is None or op_name(made) not in _SAME_VALUES or not made.inputs:
            return False
        number, before = made.inputs[0].tensor, made.index
    return False
