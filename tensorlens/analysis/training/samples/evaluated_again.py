"""Finds parts of a data set that a program evaluates on, and of which it has trained on many samples.

So it is if the data set is split twice, at random: once for the part to train on, and once for the other part.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from math import sqrt

from tensorlens.analysis.lineage import ancestry
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.loss_calls import examined_passes
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.analysis.training.timeline import DATA_SET
from tensorlens.records.model import Call
from tensorlens.records.training_samples import EvaluatedRows

_MIN_ROWS = 10
_LOADING = "Module.load_state_dict"
_LEFT = 8  # numbers of samples above the greatest one that is seen
_MOST_TRAINED, _MOST_ABOVE, _MOST_RUNS = 2_000, 100, 400
_WIDE = 4.0  # standard deviations


def evaluated_again(training: MeasuredTraining) -> Iterator[EvaluatedRows]:
    """Yields these parts, as they were last seen, one for each line.

    The two parts could be apart, as together they have the samples of the data set, and they share as many as two
    random draws do. A program with several models, or that gives its model other values, may begin anew for another
    part. Nor is anything known where the other part of the split that is trained on is evaluated as well.
    """
    facts = training.facts
    parts = facts.trace.inspection.evaluated_rows
    last = facts.backwards[-1].index if facts.backwards else 0
    sites = facts.trace.sites
    is_loaded = parts and any(sites[call.site].through == _LOADING for call in facts.calls_between(0, last))
    if not parts or is_loaded or not _is_one_model(training) or any(map(_is_rest, parts)) or _has_another_set(facts):
        return
    seen = set[int | None]()
    for each in parts:
        if each.number == parts[-1].number and each.site not in seen and _is_by_chance(each):
            seen.add(each.site)
            yield each


def _is_one_model(training: MeasuredTraining) -> bool:
    """Returns whether all passes are for the same parameters, which only the steps of one optimizer change."""
    facts = training.facts
    leaves = {frozenset(change.tensor for change in backward.gradients) for backward in facts.backwards}
    if len(leaves) != 1 or sum(call.op.startswith("optim.") for call in facts.calls) != 1:
        return False
    (trained,) = leaves
    if any(training.written_after(number, facts.backwards[0].index) for number in trained):
        return False
    later = (call for call in facts.calls_between(facts.backwards[0].index) if not call.within)
    return all(
        trained.isdisjoint(write.tensor for write in call.writes)
        and not (call.op == DATA_SET and call.inputs and call.inputs[0].tensor in trained)
        for call in later
    )


def _has_another_set(facts: TraceIndex) -> bool:
    """Returns whether the model gets rows of tables without gradients that no pass uses: those of a test set. A part of
    the others may then be watched on purpose."""
    leaves = {change.tensor for backward in facts.backwards for change in backward.gradients}
    trained = set[int]()
    for backward in examined_passes(facts):
        for root in backward.roots:
            trained |= _tables(facts, root.tensor, backward.index, _MOST_TRAINED)
    runs = (
        call
        for call in facts.calls
        if call.mode != "grad" and not call.within and any(access.tensor in leaves for access in call.inputs)
    )
    for call in islice(runs, _MOST_RUNS if trained else 0):
        own = _tables(facts, call.inputs[0].tensor, call.index, _MOST_ABOVE)
        if own and own.isdisjoint(trained):
            return True
    return False


def _tables(facts: TraceIndex, number: int, before: int, most: int) -> set[int]:
    above = (made for _, made in ancestry(facts, number, before, most))
    return {made.inputs[0].tensor for made in above if op_name(made) in ("getitem", "index_select") and made.inputs}


def draws_of_parts(facts: TraceIndex, part: EvaluatedRows) -> list[Call]:
    """Returns the permutations of all samples that the program draws, but for those of loaders."""
    sites = facts.trace.sites
    drawn = (call for call in facts.calls if op_name(call) == "randperm" and "Loader" not in sites[call.site].through)
    sizes = [(call, facts.tensor(call.outputs[0].tensor).shape[0]) for call in drawn]
    return [call for call, size in sizes if part.samples <= size <= part.samples + _LEFT]


def _is_rest(part: EvaluatedRows) -> bool:
    return part.again == 0 and _is_split(part)


def _is_split(part: EvaluatedRows) -> bool:
    return abs(part.trained + part.evaluated - part.samples) <= _LEFT


def _is_by_chance(part: EvaluatedRows) -> bool:
    share, found = part.trained / part.samples, part.again / part.evaluated
    is_split = _is_split(part) and part.evaluated >= _MIN_ROWS
    near = _WIDE * sqrt(share * (1 - share) / part.evaluated)
    return is_split and 0 < part.again < part.evaluated and abs(found - share) < near
