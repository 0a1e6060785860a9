"""Advises on a saved tensor that was overwritten: which line to change so that backward has the values it needs.

The advice that keeps every gradient is first. A sentence that changes which parameters a pass trains says so.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tensorlens.analysis.carried import Carried, carried, name_in_function
from tensorlens.analysis.contexts import failed_backward
from tensorlens.analysis.lineage import graph_leaves
from tensorlens.analysis.naming.places import callers, place_of
from tensorlens.analysis.saved_tensors import Save, SavedTensorChange
from tensorlens.analysis.shared_frame import SharedFrame, is_read_between, loop_around, movable_lines, shared_frame
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.diagnostics.saved_tensors._copy_advice import fixes_of_a_write
from tensorlens.diagnostics.shared.kept import line_from
from tensorlens.diagnostics.shared.wording import fix, named, source_text
from tensorlens.records.model import Backward, Call, Failure
from tensorlens.records.report import Fix


def fixes_of(facts: TraceIndex, change: SavedTensorChange, failure: Failure) -> tuple[Fix, ...]:
    """Suggests how to keep the values that a failed backward needs, the safest first."""
    if change.first is None:
        return (fix("keep what backward needs: change a copy made with `clone()`"),)
    event, save = change.first.event, change.save
    if isinstance(event, Backward):
        place = None if save.call is None else facts.span(save.call.site)
        return (
            fix("use a copy of the gradient, made with `clone()`: backward adds to the tensor itself", place=place),
        )
    parameter = next((n for n in (change.first.write.tensor, save.tensor) if _is_trained(facts, n, event.index)), None)
    if not event.within and parameter is None:
        return tuple(fixes_of_a_write(facts, change, event, change.first.write.tensor))
    old = _state_of_an_earlier_pass(facts, failure, save)
    if old is not None:
        return (old,)
    frame = shared_frame(facts, event, failure)
    if event.within:
        return tuple(_fixes_of_a_step(facts, event, failure, frame, save))
    return tuple(_fixes_of_an_update(facts, change, event, failure, frame, parameter or 0))


def _is_trained(facts: TraceIndex, number: int | None, at: int) -> bool:
    """Returns whether the tensor is a leaf that requires grad. Such a leaf is written on purpose, with recording
    off."""
    return number is not None and facts.is_leaf_requiring_grad(number, at)


# --- a graph of an earlier pass --------------------------------------------------------------------------------------


def _state_of_an_earlier_pass(facts: TraceIndex, failure: Failure, save: Save) -> Fix | None:
    """Advises on a graph that a state carries from one pass to the next, and that `retain_graph=True` keeps alive."""
    failed = failed_backward(facts, failure)
    if failed is None or save.call is None:
        return None
    passes = [b for b in facts.backwards if save.call.index < b.index < failure.index and b.site == failure.site]
    found = carried(facts, failed, passes[-1], save.call) if passes else None
    return None if found is None else cut_carried(facts, found, passes[-1])


def cut_carried(facts: TraceIndex, found: Carried, after: Backward) -> Fix:
    """Advises to detach a carried tensor after the pass that it must not carry the graph over."""
    name, place = name_in_function(facts, found, after.site), facts.span(after.site)
    if name is not None and "[" not in name:
        kept = " (`retain_graph=True` is then not needed)" if after.retain_graph else ""
        cut = f"put `{name} = {name}.detach()` below this line"
        return fix(f"`{name}` leads back to the graph of an earlier pass: {cut}{kept}", place=place)
    known = named(facts, found.tensor, found.made.index)
    return fix(
        f"{known} (made in {line_from(facts, found.made.site, after.site)}) leads back to the graph of an earlier "
        "pass: `detach()` it after this backward",
        place=place,
    )


# --- an optimizer step -----------------------------------------------------------------------------------------------


def _fixes_of_a_step(
    facts: TraceIndex, step: Call, failure: Failure, frame: SharedFrame | None, save: Save
) -> Iterator[Fix]:
    """Suggests fixes for a step between a forward pass and its backward.

    The later backward also reaches the parameters that the step owns. So moving the step alone would let it use
    gradients of a second loss.
    """
    backward = f"`{source_text(facts, failure.site)}`"
    at = step.site if frame is None else frame.change
    root = failure.inputs[0].tensor if failure.inputs else None
    loss = "the loss" if root is None else _loss_name(facts, root, failure, frame)
    below = "after this step" if frame is None else "below this line"
    made_in = _made_in(facts, root, at) if frame is not None and loss.startswith("`") else ""
    again = fix(
        f"compute {loss}{made_in} {below}, with its whole forward pass: it then uses the new values",
        place=facts.span(at),
    )
    made = -1 if save.call is None else save.call.index
    if frame is not None and not any(made < b.index < step.index and not b.failed for b in facts.backwards):
        where = line_from(facts, frame.backward, at)
        moved = f"move `{source_text(facts, at)}` below {where}"
        text = f"{moved}: it then uses the gradients of that backward instead of older ones"
        yield fix(text, place=facts.span(at))
        yield replace(again, title=f"or {again.title}")
        return
    yield again
    needed = failure.site if frame is None else frame.backward
    owned = {write.tensor for call in facts.calls if call.within and call.site == step.site for write in call.writes}
    if root is not None and _trains_only_later_layers(facts, root, save, owned, failure.index):
        yield fix(
            f"if {backward} is not to train {named(facts, save.tensor)}, run the layers behind it again on a detached "
            "input, for this loss only",
            place=facts.span(needed),
        )
    if frame is None:
        return
    where = line_from(facts, needed, at)
    if _has_backward(facts, step, frame):
        moved = f"or move `{source_text(facts, at)}` below {where}"
        text = f"{moved}, if it clears the gradients first: else its step also uses those of {where}"
        yield fix(text, place=facts.span(at))
        return
    yield fix(
        f"or move `{source_text(facts, at)}` below {where}, and give that backward `inputs=[...]`, without the "
        "parameters that the step changes: else the step uses the gradients of both losses",
        place=facts.span(at),
    )


def _made_in(facts: TraceIndex, root: int | None, at: int) -> str:
    """Returns " (line 47)", the line that computes a loss or calls its function; "" if it is not known.

    If a line of the function that the reader is sent to ran it, it is that line.
    """
    made = None if root is None else facts.creator(root)
    if made is None:
        return ""
    here = place_of(facts.trace.sites[at])[:2]
    sites = (made.site, *callers(facts.trace, made.site))
    site = next((site for site in sites if place_of(facts.trace.sites[site])[:2] == here), made.site)
    return f" ({line_from(facts, site, at)})"


def _loss_name(facts: TraceIndex, root: int, failure: Failure, frame: SharedFrame | None) -> str:
    """Returns the name of a loss in the function that the reader is sent to: a caller may name it otherwise."""
    if frame is None or frame.backward == failure.site:
        return named(facts, root, failure.index)
    made = facts.creator(root)
    name = facts.names.script_name(root, None if made is None else made.index)
    text = source_text(facts, frame.backward, 0)
    return f"`{name}`" if name and name in text else "that loss"


def _trains_only_later_layers(facts: TraceIndex, root: int, save: Save, owned: set[int], before: int) -> bool:
    """Returns whether a loss reaches parameters that the step does not own, all of them behind the saved tensor."""
    result = None if save.call is None or not save.call.outputs else save.call.outputs[0].tensor
    if result is None or save.call is None:
        return False
    ahead = graph_leaves(facts, result, save.call.index + 1) | {access.tensor for access in save.call.inputs}
    others = graph_leaves(facts, root, before) - owned
    return bool(others) and not others & ahead


# --- an update by hand -----------------------------------------------------------------------------------------------


def _fixes_of_an_update(
    facts: TraceIndex,
    change: SavedTensorChange,
    call: Call,
    failure: Failure,
    frame: SharedFrame | None,
    parameter: int,
) -> Iterator[Fix]:
    """Suggests fixes for a call that gives a leaf other values while a graph still needs the old ones."""
    name = named(facts, parameter, call.index)
    read = is_read_between(facts, facts.tensor(parameter).counter, call.index, failure.index)
    lines = None if frame is None or read or _has_backward(facts, call, frame) else movable_lines(facts, frame)
    root = failure.inputs[0].tensor if failure.inputs else None
    loss = "the loss" if root is None else _loss_name(facts, root, failure, frame)
    if frame is not None and lines is not None:
        what = f"`{source_text(facts, frame.change)}`" if lines[0] == lines[1] else f"lines {lines[0]} to {lines[1]}"
        below = line_from(facts, frame.backward, frame.change)
        text = f"move {what} below {below}: until then the forward pass needs {name} as it was"
    elif frame is not None and loop_around(facts, frame.change, frame.backward):
        text = (
            "before this line, take the gradients of this iteration with `torch.autograd.grad(...)`; their sum "
            "replaces the later backward"
        )
    elif frame is not None and not read:
        text = f"compute {loss} below this line, with its whole forward pass: it then uses the new values"
    else:
        text = f"change {name} only after the backward that needs it, or run the forward pass again after this line"
    yield fix(text, place=facts.span(call.site if frame is None else frame.change))
    model = _untrained_model(facts, named(facts, parameter).strip("`"), change.save)
    if model:
        yield fix(f"or call `{model}` under `torch.no_grad()`: no optimizer trains its parameters")


def _untrained_model(facts: TraceIndex, parameter: str, save: Save) -> str:
    """Returns the model that owns a parameter, if no optimizer was given a parameter of it, nor one from which the
    saved values were computed."""
    model = parameter.rpartition(".")[0].rpartition(".")[0]
    result = None if save.call is None or not save.call.outputs else save.call.outputs[0].tensor
    if not model or result is None or save.call is None:
        return ""
    trained = {a.tensor for call in facts.calls if call.op.startswith("optim.") for a in call.inputs}
    trained |= {write.tensor for call in facts.calls if call.within for write in call.writes}
    names = (named(facts, number).strip("`") for number in trained)
    above = graph_leaves(facts, result, save.call.index + 1) & trained
    return "" if above or not trained or any(name.startswith(f"{model}.") for name in names) else model


def _has_backward(facts: TraceIndex, call: Call, frame: SharedFrame) -> bool:
    """Returns whether the line to move also runs a backward pass: then it cannot move below the other one."""
    near = [b for b in facts.backwards if b.index < call.index and not b.failed]
    if not near or frame.change == call.site:
        return False
    span = facts.span(frame.change)
    runs = [facts.span(site) for site in _chain(facts, near[-1].site)]
    return span is not None and any(s is not None and (s.file, s.line) == (span.file, span.line) for s in runs)


def _chain(facts: TraceIndex, site: int) -> Iterator[int]:
    current: int | None = site
    seen: set[int] = set()
    while current is not None and current not in seen:
        seen.add(current)
        yield current
        current = facts.trace.sites[current].caller
