"""Advises on an update by hand: a call that gives a leaf other values while a graph still needs the old ones."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensorlens.analysis.lineage import graph_leaves
from tensorlens.analysis.naming.line_parts import span_of
from tensorlens.analysis.naming.syntax import plain_name
from tensorlens.analysis.saved_tensors import Save, SavedTensorChange
from tensorlens.analysis.shared_frame import SharedFrame, function_of, is_read_between, loop_around, movable_lines
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.diagnostics.saved_tensors._step_advice import (
    Overwritten,
    begin_of,
    computed_again,
    has_backward,
)
from tensorlens.diagnostics.shared.edits.kept_copies import copies_for
from tensorlens.diagnostics.shared.edits.run_again import Rerun
from tensorlens.diagnostics.shared.edits.statements import module_name, moved_after
from tensorlens.diagnostics.shared.kept import described, line_from, operation
from tensorlens.diagnostics.shared.wording import fix, named, source_text
from tensorlens.records.report import Edit, Fix
from tensorlens.records.source import text_of


def fixes_of_an_update(
    facts: TraceIndex, change: SavedTensorChange, case: Overwritten, parameter: int
) -> Iterator[Fix]:
    """Suggests to move the update below the backward, or to let the forward pass use copies or the new values."""
    name, call, frame = named(facts, parameter, case.change.index), case.change, case.frame
    first = begin_of(facts, case)
    read = any(is_read_between(facts, counter, first, case.failure.index) for counter in _written(facts, case, first))
    lines = None if frame is None or read or has_backward(facts, call, frame) else movable_lines(facts, frame)
    rerun = None if frame is None else Rerun(facts, case.failure, frame, first)
    again = None if rerun is None or read else computed_again(facts, case, rerun)
    copied = _with_copies(facts, change, case)
    if frame is not None and lines is not None:
        yield _moved(facts, frame, lines, name)
    elif again is not None and again.edits:
        yield again
    elif copied is not None:
        yield copied
    elif frame is not None and loop_around(facts, frame.change, frame.backward):
        text = (
            "before this line, take the gradients of this iteration with `torch.autograd.grad(...)`; their sum "
            "replaces the later backward"
        )
        yield fix(text, place=facts.span(frame.change))
    elif again is not None:
        yield again
    else:
        text = f"change {name} only after the backward that needs it, or run the forward pass again after this line"
        yield fix(text, place=facts.span(case.at))
    model = _untrained_model(facts, named(facts, parameter).strip("`"), change.save)
    if model:
        yield fix(f"or call `{model}` under `torch.no_grad()`: no optimizer trains its parameters")


def _written(facts: TraceIndex, case: Overwritten, first: int) -> set[int]:
    """Returns the version counters that the line to change wrote, as far as the backward that failed."""
    calls = (c for c in facts.calls if first <= c.index < case.failure.index)
    return {facts.tensor(write.tensor).counter for call in calls for write in call.writes}


def _moved(facts: TraceIndex, frame: SharedFrame, lines: tuple[int, int], name: str) -> Fix:
    what = f"`{source_text(facts, frame.change)}`" if lines[0] == lines[1] else f"lines {lines[0]} to {lines[1]}"
    below = line_from(facts, frame.backward, frame.change)
    one, other = facts.span(frame.change), facts.span(frame.backward)
    edits = None if one is None or other is None else moved_after(facts, one.file, lines[0], other.line)
    text = f"move {what} below {below}: until then the forward pass needs {name} as it was"
    return fix(text, *(edits or ()), place=one)


def _with_copies(facts: TraceIndex, change: SavedTensorChange, case: Overwritten) -> Fix | None:
    """Lets the forward pass use copies of the parameters: the gradients that reach them stay the same."""
    save = change.save
    place = None if save.call is None else facts.span(save.call.site)
    edits = copies_for(facts, [save, *change.others], case.change.site)
    if edits:
        text = f"let {operation(facts, save.call)} keep a copy of {described(facts, save.tensor)}: no value changes"
        return fix(text, *edits, place=place)
    found = None if case.frame is None or save.tensor is None else _model_call(facts, case.frame, save.tensor)
    if found is None:
        return None
    model, edit = found
    return fix(f"let `{model}` compute with copies of its parameters here: no value changes", edit)


def _model_call(facts: TraceIndex, frame: SharedFrame, parameter: int) -> tuple[str, Edit] | None:
    """Rewrites the only call of the module that owns a parameter, above the change and in the innermost loop around
    it, as a `functional_call` with copies."""
    span, function = facts.span(frame.change), function_of(facts, frame.change)
    torch = None if span is None else module_name(facts, span.file, "torch")
    if span is None or function is None or torch is None:
        return None
    scope = facts.trace.sites[frame.change].function
    owners = {b.name for b in facts.trace.end.bindings if b.tensor == parameter and b.scope == scope}
    loops = [n for n in ast.walk(function) if isinstance(n, ast.For) and n.lineno <= span.line <= (n.end_lineno or 0)]
    around = max(loops, key=lambda loop: loop.lineno, default=function)
    calls = [
        (node, model)
        for node in ast.walk(around)
        if isinstance(node, ast.Call) and node.lineno < span.line
        if (model := plain_name(node.func)) and any(owner.startswith(f"{model}.") for owner in owners)
    ]
    if len(calls) != 1 or calls[0][0].keywords or any(isinstance(each, ast.Starred) for each in calls[0][0].args):
        return None
    node, model = calls[0]
    if not node.args or node.lineno != node.end_lineno:
        return None
    place = span_of(node, facts.trace.sources[span.file], span.file)
    given = [
        text_of(facts.trace.sources[span.file], span_of(each, facts.trace.sources[span.file], span.file))
        for each in node.args
    ]
    copies = f"{{name: p.clone() for name, p in {model}.named_parameters()}}"
    values = f"({given[0]},)" if len(given) == 1 else f"({', '.join(given)})"
    return model, Edit(place, f"{torch}.func.functional_call({model}, {copies}, {values})")


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
