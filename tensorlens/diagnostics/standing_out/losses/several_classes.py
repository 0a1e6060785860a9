"""Names losses over classes that are given several classes for one row, where an evaluation judges each by itself."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensorlens.analysis.lineage import ancestry
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.loss_calls import examined_passes, recorded_above
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.analysis.training.value_ranges import made_as_zero_or_one
from tensorlens.analysis.written_numbers import written_number
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.diagnostics.shared.wording import as_written
from tensorlens.records.model import Call
from tensorlens.records.report import StandingOut

_APART = frozenset("gt lt ge le bernoulli randint".split())  # elements that say nothing of others in their row
_JOINING = frozenset("stack cat concat vstack".split())
_SAME_VALUES = frozenset("view reshape flatten squeeze unsqueeze contiguous float detach getitem cpu to".split())
_SIGMOIDS = frozenset(("sigmoid", "logsigmoid"))
_LOSSES_APART = frozenset(
    "binary_cross_entropy_with_logits multilabel_soft_margin_loss soft_margin_loss softplus sigmoid_focal_loss".split()
)
_ORDERED = frozenset("gt ge lt le".split())
_OF_ORDER = frozenset(
    "argsort sort msort topk kthvalue cumsum cumprod argmax argmin max min one_hot scatter eye".split()
)
_MAX_DEPTH, _MOST_ABOVE = 4, 60


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    """Finds `cross_entropy(out, tags)` with targets that are compared or drawn one by one, and `sigmoid(out)`, unless a
    loss trains this, too."""
    facts, seen = training.facts, set[int]()
    for backward in examined_passes(facts):
        for call in recorded_above(facts, backward):
            if call.site in seen or len(call.inputs) != 2 or op_name(call) not in ("cross_entropy", "mul", "rmul"):
                continue
            seen.add(call.site)
            scores, targets = _parts(facts, call)
            made = None if scores is None else _targets(facts, call, (scores, targets))
            judged = None if scores is None or made is None else _judged(facts, scores, call)
            if made is not None and judged is not None:
                yield stands_out(
                    f"{as_written(facts, call)} computes the softmax of a row, as if it had one class, and is given "
                    f"zeros and ones of each class by itself; {as_written(facts, judged)} judges each class by itself",
                    facts.label("needed_here", call.site, "one class a row", call.index),
                    facts.label("value_made_here", made.site, "zeros and ones of each class", made.index),
                    facts.label("observed_here", judged.site, "each class by itself", judged.index),
                )


def _parts(facts: TraceIndex, loss: Call) -> tuple[int | None, int]:
    """Returns the scores and the targets of a loss over classes, also of a product with `log_softmax(scores)`."""
    first, second = (access.tensor for access in loss.inputs)
    if op_name(loss) == "cross_entropy":
        return first, second
    for logs, other in ((first, second), (second, first)):
        made = facts.creator(logs)
        if made is not None and op_name(made) == "log_softmax" and made.inputs:
            return made.inputs[0].tensor, other
    return None, second


def _targets(facts: TraceIndex, loss: Call, given: tuple[int, int]) -> Call | None:
    """Returns the call that compares or draws each element of the targets by itself."""
    scores, targets = map(facts.tensor, given)
    if scores.shape != targets.shape or len(targets.shape) != 2 or targets.shape[1] < 2:
        return None
    number, before = given[1], loss.index
    made = made_as_zero_or_one(facts, number, before)
    for _ in range(_MAX_DEPTH):  # a loader joins the rows of a batch
        if made is None or op_name(made) not in _JOINING or not made.inputs:
            break
        made = made_as_zero_or_one(facts, made.inputs[0].tensor, made.index)
    if made is None or op_name(made) not in _APART or not made.outputs or _is_of_order(facts, made):
        return None
    if len(made.inputs) > 1:  # a row may have one value that is at least as great as its own maximum
        sizes = [facts.tensor(access.tensor).shape[-1:] for access in made.inputs]
        if any(size == (1,) for size in sizes):
            return None
    return made if facts.tensor(made.outputs[0].tensor).shape[-1:] == targets.shape[-1:] else None


def _is_of_order(facts: TraceIndex, made: Call) -> bool:
    """Returns whether a comparison depends on a whole row: of ranks from 0, one is below 1."""
    above = (call for access in made.inputs for _, call in ancestry(facts, access.tensor, made.index, _MOST_ABOVE))
    return any(op_name(call).rstrip("_") in _OF_ORDER for call in above)


def _judged(facts: TraceIndex, scores: int, loss: Call) -> Call | None:
    """Returns a sigmoid, or a comparison with zero, of what the layer or the line that made the scores makes."""
    scored = next(iter(facts.producers(scores, loss.index)), None)
    for _ in range(_MAX_DEPTH):
        if scored is not None and op_name(scored) in _SAME_VALUES and scored.inputs:
            scored = next(iter(facts.producers(scored.inputs[0].tensor, scored.index)), None)
    weights = set[int]() if scored is None else _weights(facts, scored)
    if scored is None or not (weights or op_name(loss) == "cross_entropy"):
        return None  # similarities of the rows of a batch, perhaps
    results = {
        access.tensor
        for call in facts.calls
        if call.op == scored.op and (_weights(facts, call) == weights if weights else call.site == scored.site)
        for access in call.outputs
    }
    if _is_trained_apart(facts, results):
        return None
    for call in facts.calls:
        is_judging = op_name(call) in _SIGMOIDS or (op_name(call) in _ORDERED and _is_with_zero(facts, call))
        if is_judging and call.inputs and _is_of(facts, call.inputs[0].tensor, call.index, results):
            return call
    return None


def _is_trained_apart(facts: TraceIndex, results: set[int]) -> bool:
    """Returns whether a loss trains the scores by a sigmoid of each, too: then both losses are meant."""
    for backward in examined_passes(facts):
        for call in recorded_above(facts, backward):
            is_apart = op_name(call) in _SIGMOIDS | _LOSSES_APART and bool(call.inputs)
            if is_apart and _is_of(facts, call.inputs[0].tensor, call.index, results):
                return True
    return False


def _is_with_zero(facts: TraceIndex, call: Call) -> bool:
    """Returns whether a call compares a tensor with 0, as the source shows."""
    node = facts.node_at(call.site)
    if len(call.inputs) != 1:
        return False
    if isinstance(node, ast.Compare) and len(node.comparators) == 1:
        return written_number(facts, node.comparators[0]) == 0
    return isinstance(node, ast.Call) and bool(node.args) and written_number(facts, node.args[-1]) == 0


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
