"""Advises on an update by hand: a call that gives a leaf other values while a graph still needs the old ones."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.lineage import graph_leaves
from tensorlens.analysis.saved_tensors import Save, SavedTensorChange
from tensorlens.analysis.shared_frame import SharedFrame, is_read_between, loop_around, movable_lines
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.diagnostics.saved_tensors._step_advice import (
    Overwritten,
    begin_of,
    computed_again,
    end_of,
    has_backward,
)
from tensorlens.diagnostics.shared.edits.run_again import Rerun
from tensorlens.diagnostics.shared.edits.statements import moved_after
from tensorlens.diagnostics.shared.kept import line_from
from tensorlens.diagnostics.shared.parameter_copies import with_copied_parameters
from tensorlens.diagnostics.shared.wording import fix, named, source_text
from tensorlens.records.report import Fix


def fixes_of_an_update(
    facts: TraceIndex, change: SavedTensorChange, case: Overwritten, parameter: int
) -> Iterator[Fix]:
    """Suggests to move the update below the backward, or to let the forward pass use copies or the new values."""
    name, call, frame = named(facts, parameter, case.change.index), case.change, case.frame
    first = begin_of(facts, case)
    last = end_of(facts, case)
    read = any(is_read_between(facts, number, last, case.failure.index) for number in _written(facts, first, last))
    lines = None if frame is None or read or has_backward(facts, call, frame) else movable_lines(facts, frame)
    rerun = None if frame is None else Rerun(facts, case.failure, frame, first)
    again = None if rerun is None or read else computed_again(facts, case, rerun)
    copied = with_copied_parameters(facts, case.saves, case.change.site, case.at)
    is_inside = not facts.names.syntax.is_direct(facts.trace.sites[call.site], call.op)  # a layer wrote in its forward
    if again is not None and copied is not None and (is_inside or not again.title.startswith("move")):
        again = None
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


def _written(facts: TraceIndex, first: int, last: int) -> set[int]:
    """Returns the version counters that were written between two events."""
    calls = (c for c in facts.calls if first <= c.index <= last)
    return {facts.tensor(write.tensor).counter for call in calls for write in call.writes}


def _moved(facts: TraceIndex, frame: SharedFrame, lines: tuple[int, int], name: str) -> Fix:
    what = f"`{source_text(facts, frame.change)}`" if lines[0] == lines[1] else f"lines {lines[0]} to {lines[1]}"
    below = line_from(facts, frame.backward, frame.change)
    one, other = facts.span(frame.change), facts.span(frame.backward)
    edits = None if one is None or other is None else moved_after(facts, one.file, lines[0], other.line)
    text = f"move {what} below {below}: until then the forward pass needs {name} as it was"
    return fix(text, *(edits or ()), place=one)


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
