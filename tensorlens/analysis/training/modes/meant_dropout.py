"""Finds dropout that is meant to run in both modes: the noise of a denoising model, and samples in one batch."""

from __future__ import annotations

from collections.abc import Sequence

from tensorlens.analysis.lineage import ancestry
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.records.model import Call

_REPEATS = frozenset("repeat expand expand_as repeat_interleave tile broadcast_to".split())
_MEANS = frozenset(("mean", "nanmean"))
_MAX_CALLS = 500  # of one run of a network


def is_corruption(facts: TraceIndex, calls: Sequence[Call]) -> bool:
    """Returns whether calls drop elements of data, and a loss compares with that data."""
    given = {call.inputs[0].tensor: call.index for call in calls if call.inputs}
    if not given or any(facts.requires_grad(number, at - 1) for number, at in given.items()):
        return False
    storages = {facts.storage_of(number, at) for number, at in given.items()}
    first = min(given.values())
    compared = (call for call in facts.calls_between(first) if call.mode == "grad" and _compares(call))
    return any(facts.storage_of(a.tensor, call.index) in storages for call in compared for a in call.inputs)


def _compares(call: Call) -> bool:
    name = op_name(call)
    return name in ("sub", "rsub") or name.endswith(("loss", "cross_entropy", "_div"))


def are_samples(facts: TraceIndex, calls: Sequence[Call]) -> bool:
    """Returns whether calls run on repeated data, and a line takes a mean of results, as of samples in one batch."""
    for call in calls:
        above = ancestry(facts, call.inputs[0].tensor, call.index, _MAX_CALLS) if call.inputs else iter(())
        repeats = (made for _, made in above if op_name(made) in _REPEATS and made.mode != "grad" and made.inputs)
        if not any(not facts.requires_grad(each.inputs[0].tensor, each.index - 1) for each in repeats):
            return False
        means = (each for each in facts.calls_between(call.index) if each.mode != "grad" and op_name(each) in _MEANS)
        if not any(each.outputs and facts.tensor(each.outputs[0].tensor).shape for each in means):
            return False
    return bool(calls)
