"""Names an index that takes the last step of a layer of both directions: one of them has read that step only."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.loss_calls import examined_passes, recorded_above
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.analysis.training.sequences_and_masks.padded_runs import indices_of, takes_last
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.diagnostics.shared.wording import as_written
from tensorlens.records.model import Call
from tensorlens.records.report import StandingOut

_LAYERS = frozenset("lstm gru rnn_tanh rnn_relu".split())
_SAME_STEPS = frozenset("dropout layer_norm relu tanh gelu contiguous".split())
_PARTS = frozenset("getitem chunk split narrow view reshape unflatten select unbind".split())
_MAX_CALLS = 5


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    facts, reported = training.facts, set[int]()
    for backward in examined_passes(facts):
        above = recorded_above(facts, backward)
        for call in above:
            layer = _layer(facts, call, above) if op_name(call) == "getitem" and call.site not in reported else None
            if layer is None or any(op_name(each) in _PARTS for each in _readers(above, call.outputs[0].tensor)):
                continue
            reported.add(call.site)
            steps = facts.tensor(layer.outputs[0].tensor).shape[_time(facts, layer)]
            yield stands_out(
                f"{as_written(facts, call)} takes the last of {steps:,} time steps of a layer that runs in both "
                "directions: in the half of the one that begins at the end, it has read that one step",
                facts.label("value_made_here", call.site, "the last step is taken here", call.index),
                facts.label("observed_here", layer.site, "runs in both directions", layer.index),
            )


def _layer(facts: TraceIndex, call: Call, above: tuple[Call, ...]) -> Call | None:
    """Returns the layer of both directions of whose result nothing but the last step goes on to the loss."""
    number, before = call.inputs[0].tensor, call.index
    for _ in range(_MAX_CALLS):
        made = next(iter(facts.producers(number, before)), None)
        if made is None or not made.inputs or len(_readers(above, number)) != 1:
            return None
        if op_name(made) in _LAYERS and len(made.outputs) > 1 and made.outputs[0].tensor == number:
            states = {access.tensor for access in made.outputs[1:]}
            is_read = any(_readers(above, each) for each in states)
            return made if not is_read and _runs_both_ways(facts, made) and _is_last(facts, made, call) else None
        if op_name(made) not in _SAME_STEPS:
            return None
        number, before = made.inputs[0].tensor, made.index
    return None


def _readers(above: tuple[Call, ...], number: int) -> list[Call]:
    return [call for call in above if any(access.tensor == number for access in call.inputs)]


def _runs_both_ways(facts: TraceIndex, layer: Call) -> bool:
    results, state = (facts.tensor(access.tensor).shape for access in layer.outputs[:2])
    is_clear = len(results) == len(state) == 3 and results[0] != results[1] and state[1] in results[:2]
    return is_clear and results[2] == 2 * state[2] and results[_time(facts, layer)] > 1


def _time(facts: TraceIndex, layer: Call) -> int:
    results, state = (facts.tensor(access.tensor).shape for access in layer.outputs[:2])
    return 1 if results[0] == state[1] else 0


def _is_last(facts: TraceIndex, layer: Call, call: Call) -> bool:
    """Returns whether an index takes all features of the last step."""
    time = _time(facts, layer)
    rest = indices_of(facts, call)[time + 1 :]
    is_whole = all(
        (isinstance(each, ast.Slice) and not (each.lower or each.upper or each.step))
        or (isinstance(each, ast.Constant) and each.value is Ellipsis)
        for each in rest
    )
    return is_whole and takes_last(facts, call, time)
