"""Names calls of `normalize()` and `cosine_similarity()` without `dim`, which run along dimension 1, not the last."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.loss_calls import examined_passes, recorded_above
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.diagnostics.shared.wording import as_written
from tensorlens.records.model import Call
from tensorlens.records.report import StandingOut

_CALLS = frozenset(("normalize", "cosine_similarity"))
_PLACE = 2  # of `dim` among the arguments of both
_LAYERS = frozenset("linear embedding lstm gru layer_norm multi_head_attention_forward".split())
_SAME_PLACES = frozenset(
    "dropout relu gelu tanh silu add mul unbind chunk split view reshape contiguous getitem".split()
)
_MAX_CALLS = 8
_MIN_SIZE = 3  # dimensions


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    """Finds them if a layer has put its features into the last of three dimensions or more."""
    facts, reported = training.facts, set[int]()
    for backward in examined_passes(facts):
        for call in recorded_above(facts, backward):
            site = _site(facts, call)
            if site is None or site in reported:
                continue
            shape = facts.tensor(call.inputs[0].tensor).shape
            layer = _layer(facts, call) if len(shape) >= _MIN_SIZE else None
            if layer is not None and shape[1] != shape[-1]:
                reported.add(site)
                yield stands_out(
                    f"{as_written(facts, call)} has no `dim` and runs along dimension 1 of shape {shape}: the features "
                    f"that {as_written(facts, layer)} makes are in the last one",
                    facts.label("value_made_here", call.site, "along dimension 1", call.index),
                    facts.label("observed_here", layer.site, "the features", layer.index),
                )


def _site(facts: TraceIndex, call: Call) -> int | None:
    """Returns the site of a call that leaves out `dim`, as the source writes it."""
    if op_name(call) not in _CALLS or not call.inputs:
        return None
    span = facts.span(call.site)
    node = None if span is None else facts.names.syntax.node(span)
    if not isinstance(node, ast.Call) or getattr(node.func, "attr", getattr(node.func, "id", "")) not in _CALLS:
        return None
    is_given = len(node.args) > _PLACE or any(each.arg in (None, "dim") for each in node.keywords)
    return None if is_given or any(isinstance(each, ast.Starred) for each in node.args) else call.site


def _layer(facts: TraceIndex, call: Call) -> Call | None:
    """Returns the layer that made the features of a call's input, if its first two dimensions are still the first."""
    number, before = call.inputs[0].tensor, call.index
    for _ in range(_MAX_CALLS):
        made = next(iter(facts.producers(number, before)), None)
        if made is None or not made.inputs:
            return None
        if op_name(made) in _LAYERS:
            own = facts.tensor(made.outputs[0].tensor).shape
            return made if len(own) >= _MIN_SIZE and own[:2] == facts.tensor(call.inputs[0].tensor).shape[:2] else None
        if op_name(made) not in _SAME_PLACES:
            return None
        number, before = made.inputs[0].tensor, made.index
    return None
