"""Labels the links between a write and what backward needs: the layer that wrote, the way back to an old graph."""

from __future__ import annotations

import ast

from tensorlens.analysis.carried import name_in_function
from tensorlens.analysis.naming.places import callers
from tensorlens.analysis.saved_tensors import SavedTensorChange, is_step
from tensorlens.analysis.shared_frame import is_only_call, shared_frame
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.diagnostics.saved_tensors._inplace_layers import inplace_layer
from tensorlens.diagnostics.saved_tensors._overwrite_advice import parameter_of, state_of_an_earlier_pass
from tensorlens.diagnostics.saved_tensors._step_advice import Overwritten, detached_part
from tensorlens.diagnostics.shared.kept import is_made_inside
from tensorlens.records.model import Call, Failure
from tensorlens.records.report import Label


def layer_label(facts: TraceIndex, change: SavedTensorChange) -> Label | None:
    """Labels the layer that wrote into its input, if the line of the write only calls the module that holds it."""
    event = None if change.first is None else change.first.event
    if not isinstance(event, Call) or facts.names.syntax.is_direct(facts.trace.sites[event.site], event.op):
        return None
    made = None if change.save.tensor is None else facts.creator(change.save.tensor)
    layer = inplace_layer(facts, event, made is not None and is_made_inside(facts, made, event))
    if layer is None:
        return None
    span = facts.span_of(layer[0], layer[1])
    return Label("modified_here", span, "this layer writes into its input")


def way_back_label(facts: TraceIndex, change: SavedTensorChange, failure: Failure) -> Label | None:
    """Labels the line through which the failed pass reaches a graph that it was not to reach."""
    event = None if change.first is None else change.first.event
    if not isinstance(event, Call) or (not is_step(facts, event) and parameter_of(facts, change, event) is None):
        return None
    state = state_of_an_earlier_pass(facts, failure, change.save)
    if state is None:
        frame = shared_frame(facts, event, failure)
        return _undetached_label(facts, Overwritten(event, failure, frame, change)) if is_step(facts, event) else None
    found, after = state
    name = name_in_function(facts, found, after.site)
    site = facts.site_in(facts.scope(after.site), found.use.site)
    what = "this" if name is None or "[" in name else f"`{name}`"
    return facts.label("graph_built_here", site, f"{what} leads back to an earlier pass")


def _undetached_label(facts: TraceIndex, case: Overwritten) -> Label | None:
    part = detached_part(facts, case)
    span = None if part is None else facts.span(case.at)
    if part is None or span is None or not part.cut:
        return None
    statement = part.statements[0]
    value = statement.value if isinstance(statement, ast.Assign) else statement
    place = facts.span_of(value, span.file)
    return Label("graph_built_here", place, f"computed from `{part.cut[0]}` with its history")


def loss_label(facts: TraceIndex, change: SavedTensorChange, failure: Failure) -> Label | None:
    """Labels the line that computed the loss before a step, in the function that also made that step.

    Only if the loss was computed in a function that no other line calls.
    """
    event = None if change.first is None else change.first.event
    made = facts.creator(failure.inputs[0].tensor) if failure.inputs else None
    if not isinstance(event, Call) or made is None or made.index > event.index or not is_step(facts, event):
        return None
    here = {facts.scope(site) for site in facts.call_chain(event.site)}
    inner = made.site
    for site in callers(facts.trace, made.site):
        if facts.scope(inner) in here or not is_only_call(facts, site, inner):
            return None
        if facts.scope(site) in here:
            return facts.label("called_here", site, "computes that loss, before the step")
        inner = site
    return None
