"""Finds the cause of `saved-tensor-modified-inplace`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tensorlens.analysis.run_numbers import run_number
from tensorlens.analysis.saved_tensors import (
    Alias,
    InplaceChange,
    Save,
    SavedTensorChange,
    is_step,
    saved_tensor_change,
)
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.diagnostics.saved_tensors._links import layer_label, loss_label, way_back_label
from tensorlens.diagnostics.saved_tensors._overwrite_advice import fixes_of
from tensorlens.diagnostics.shared.kept import (
    described,
    is_made_inside,
    is_plain,
    kept_name,
    kept_of,
    kept_text,
    line_from,
    operation,
    short_iteration,
)
from tensorlens.diagnostics.shared.wording import as_written, finding, fix, named, severity_of
from tensorlens.records.model import Call, Failure, Gap
from tensorlens.records.report import Diagnostic, Label

CODE = "saved-tensor-modified-inplace"


def find(facts: TraceIndex) -> Iterator[Diagnostic]:
    for failure in facts.failures(CODE):
        yield explain(facts, failure)


def explain(facts: TraceIndex, failure: Failure) -> Diagnostic:
    """Reports the saved tensor that PyTorch raised on; the others that fail the version check are counted."""
    change = saved_tensor_change(facts, failure)
    if change is None:
        return finding(
            CODE,
            severity_of(failure),
            "a tensor that backward still needs was overwritten",
            "PyTorch stops because the values are no longer those that the forward pass used; which ones, was not seen",
            [facts.label("needed_here", failure.site, "backward needs the old values")],
            fixes=(fix("keep what backward needs: change a copy made with `clone()`"),),
        )
    return finding(
        CODE,
        severity_of(failure),
        _title(facts, change),
        _explanation(facts, change.save),
        _labels(facts, change, failure),
        notes=() if change.changes else (_unknown_change(facts),),
        fixes=fixes_of(facts, change, failure),
        evidence=_evidence(change),
        detail=("; ".join(filter(None, (_versions(facts, change), *_more(facts, change.others, change.save)))),),
    )


def _unknown_change(facts: TraceIndex) -> str:
    unknown = "which call overwrote it is not known"
    return f"{unknown} (see the gaps below)" if any(isinstance(event, Gap) for event in facts.events) else unknown


def _title(facts: TraceIndex, change: SavedTensorChange) -> str:
    save = change.save
    name = described(facts, save.tensor, None if save.call is None else save.call.index)
    if change.first is None:
        return f"{name} was overwritten, and backward still needs it"
    event, made = change.first.event, None if save.tensor is None else facts.creator(save.tensor)
    if made is not None and is_made_inside(facts, made, event):
        name = f"the result of {operation(facts, made)} inside it"
    return f"{as_written(facts, event)} overwrote {name}, which backward still needs"


def _explanation(facts: TraceIndex, save: Save) -> str:
    what = kept_name(facts, kept_of(save))
    gradient = f"the gradient of {operation(facts, save.call)}" if save.call is not None else "a gradient"
    if save.call is not None and save.call.op.startswith("ctx."):
        gradient = f"the gradient of `{save.saved.node.removesuffix('Backward')}`"
    return f"{gradient} needs {what} as it was"


# --- labels ----------------------------------------------------------------------------------------------------------


def _labels(facts: TraceIndex, change: SavedTensorChange, failure: Failure) -> Iterator[Label | None]:
    save = change.save
    if change.first is not None:
        event = change.first.event
        yield facts.label("modified_here", event.site, _change_text(facts, change.first), event.index)
        yield layer_label(facts, change)
    if change.alias is not None:
        yield _alias_label(facts, change.alias)
    yield way_back_label(facts, change, failure) or loss_label(facts, change, failure)
    if save.call is not None:
        yield facts.label("saved_here", save.call.site, kept_text(facts, kept_of(save)), save.call.index)
    yield facts.label("needed_here", change.needed_at, _needed_text(facts, change))


def _change_text(facts: TraceIndex, change: InplaceChange) -> str:
    event = change.event
    if isinstance(event, Call) and is_step(facts, event):
        return f"overwritten here, by `{event.within}()`"
    return f"overwritten here{short_iteration(facts, event)}" if isinstance(event, Call) else "added to here"


def _alias_label(facts: TraceIndex, alias: Alias) -> Label | None:
    at = alias.call.index
    role = "shared_here" if facts.tensor(alias.tensor).base is None else "view_made_here"
    text = f"{named(facts, alias.tensor, at)} shares memory with {named(facts, alias.source, at)}"
    return facts.label(role, alias.call.site, text)


def _needed_text(facts: TraceIndex, change: SavedTensorChange) -> str:
    if change.first is None:
        return "needs the values from before"
    site = change.first.event.site
    text = f"needs the values that {line_from(facts, site, change.needed_at)} overwrote"
    return text if _is_above(facts, site, change.needed_at) else f"{text} before"


def _is_above(facts: TraceIndex, one: int, other: int | None) -> bool:
    """Returns whether a line is above another one in the same file, so that a reader expects it to run first."""
    first, second = facts.span(one), facts.span(other)
    return first is not None and second is not None and first.file == second.file and first.line < second.line


# --- the detail line -------------------------------------------------------------------------------------------------


def _versions(facts: TraceIndex, change: SavedTensorChange) -> str:
    saved = change.save.saved
    node = f"`{saved.node}`" if saved.node else "autograd"
    what, name = kept_name(facts, kept_of(change.save)), _name(facts, change.save)
    what = name if is_plain(name) and what != "its result" else what
    first = change.first.event.site if change.first is not None else None
    lines = [line_from(facts, e.event.site, first) for e in change.changes if not facts.same_line(e.event.site, first)]
    again = f"; overwritten again by {_joined(list(dict.fromkeys(lines)), 3)}" if lines else ""
    return f"{node} saved version {saved.expected} of {what} and found {saved.found}{again}"


def _more(facts: TraceIndex, others: Sequence[Save], first: Save) -> Iterator[str]:
    """Counts the other saved tensors that fail the version check: in other runs of the same line, and elsewhere."""
    run = _run(facts, first)
    same_line = [o for o in others if run and o.call and first.call and o.call.site == first.call.site]
    earlier = [o for o in same_line if _run(facts, o) not in (0, run)]
    if earlier and first.call is not None:
        runs = len({_run(facts, o) for o in earlier})
        line = line_from(facts, first.call.site, None)
        yield f"{runs} other run{'s' if runs > 1 else ''} of {line} {'have' if runs > 1 else 'has'} the same problem"
    rest = dict.fromkeys(_name(facts, o) for o in others if o not in earlier and o.tensor != first.tensor)
    rest.pop(_name(facts, first), None)
    if rest:
        yield f"also overwritten: {_joined(list(rest), 1)}"


def _run(facts: TraceIndex, save: Save) -> int:
    """Returns the number of the run of its line that saved a tensor; 0 if that is not known."""
    number = None if save.call is None else run_number(facts.trace, save.call)
    return 0 if number is None else number.number


def _name(facts: TraceIndex, save: Save) -> str:
    name = named(facts, save.tensor, None if save.call is None else save.call.index)
    return name if save.tensor is not None else f"the `{save.saved.slot}` of `{save.saved.node}`"


def _joined(words: list[str], most: int) -> str:
    shown = words[:most] + ([f"{len(words) - most} more"] if len(words) > most else [])
    return " and ".join(filter(None, (", ".join(shown[:-1]), shown[-1])))


def _evidence(change: SavedTensorChange) -> dict[str, object]:
    saved = change.save.saved
    changes = [(getattr(each.event, "op", ""), each.write) for each in change.changes]
    return {
        "node": saved.node,
        "slot": saved.slot,
        "saved_version": saved.expected,
        "found_version": saved.found,
        "changes": [{"op": op, "before": write.before, "after": write.after} for op, write in changes],
    }
