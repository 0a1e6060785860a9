"""Names batch norm of an `AveragedModel` that runs with the running statistics of the model that it averages."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensorlens.analysis.lineage import ancestry
from tensorlens.analysis.naming.syntax import last_name
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.averaged_parameters import AVERAGED
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.analysis.training.run_summary import is_complete
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.records.model import Call
from tensorlens.records.report import StandingOut

_OWN_MEANS = frozenset(("avg_fn", "multi_avg_fn", "use_buffers"))
_MIN_UPDATES = 2  # the first one copies the model
_MOST_COPIES = 6  # calls between a running mean and the copy that an update makes of it


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    """Finds these layers, if the weights are plain means, and no pass in training mode ever computes statistics for
    them, as `update_bn()` does.

    A moving average is near the last model, so that its statistics may serve. Where the layers of the model are frozen
    between the updates, their statistics are meant to stay.
    """
    facts = training.facts
    if not is_complete(facts.trace):
        return
    if not any(site.through == AVERAGED for site in facts.trace.sites):
        return
    layers = [call for call in facts.calls if call.op == "nn.functional.batch_norm" and len(call.inputs) > 2]
    rounds = {mean: _rounds(facts, mean) for mean in dict.fromkeys(call.inputs[1].tensor for call in layers)}
    training_layers = [call for call in layers if _is_training(facts, call)]
    found = {
        mean: each
        for mean, each in rounds.items()
        if len(each) >= _MIN_UPDATES and _is_plain_mean(facts, mean) and _has_changed(facts, each, training_layers)
    }
    used = [call for call in layers if (mean := call.inputs[1].tensor) in found and call.index > found[mean][-1].index]
    if not used:
        return
    first, updates = used[0], found[used[0].inputs[1].tensor]
    count = len({call.inputs[1].tensor for call in used})
    layer = "a batch norm" if count == 1 else f"{count} batch norms"
    chain = facts.call_chain(first.site)[1:3]
    yield stands_out(
        f"{layer} of the `AveragedModel` run{'s' if count == 1 else ''} in eval mode with the running statistics of "
        f"the model at the last of {len(updates)} updates, and not with those of the averaged weights: `update_bn()` "
        "computes these",
        facts.label("observed_here", first.site, "runs in eval mode", first.index),
        facts.label("modified_here", updates[-1].site, "the statistics are copied here", updates[-1].index),
        *(facts.label("called_here", site, "called here") for site in chain),
    )


def _rounds(facts: TraceIndex, mean: int) -> list[Call]:
    """Returns the updates that copy running means; none if another call writes to these."""
    writes = [event for event, _ in facts.writes(facts.tensor(mean).counter)]
    calls = [event for event in writes if isinstance(event, Call)]
    is_copied = len(calls) == len(writes) and all(facts.trace.sites[each.site].through == AVERAGED for each in calls)
    return calls if is_copied else []


def _is_training(facts: TraceIndex, call: Call) -> bool:
    """Returns whether a layer runs in training mode: it counts its batches just before."""
    before = facts.call(call.index - 1)
    is_count = before is not None and before.site == call.site and op_name(before) == "add" and bool(before.writes)
    return before is not None and is_count and facts.tensor(before.writes[0].tensor).shape == ()


def _has_changed(facts: TraceIndex, updates: list[Call], layers: list[Call]) -> bool:
    """Returns whether a layer in training mode changes the mean that the updates copy, between two of these."""
    first, last = updates[0], updates[-1]
    copied = {number for number, _ in ancestry(facts, last.inputs[-1].tensor, last.index, _MOST_COPIES)}
    sources = set[int | None]().union(*(facts.storages_of(number) for number in copied | {last.inputs[-1].tensor}))
    means = {call.inputs[1].tensor for call in layers if first.index < call.index < last.index}
    return any(facts.storages_of(mean) & sources for mean in means)


def _is_plain_mean(facts: TraceIndex, mean: int) -> bool:
    """Returns whether the line that makes the average gives it no function of its own."""
    made = facts.creator(mean)
    span = None if made is None else facts.span(made.site)
    node = None if span is None else facts.names.syntax.node(span)
    is_one = isinstance(node, ast.Call) and last_name(node.func) == "AveragedModel" and len(node.args) < 3
    return isinstance(node, ast.Call) and is_one and not any(each.arg in _OWN_MEANS | {None} for each in node.keywords)
