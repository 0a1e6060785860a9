"""Advises on a saved tensor that was overwritten: which line to change so that backward has the values it needs.

The advice that keeps every gradient is first. A sentence that changes which parameters a pass trains says so.
"""

from __future__ import annotations

from tensorlens.analysis.carried import Carried, carried, name_in_function
from tensorlens.analysis.contexts import failed_backward
from tensorlens.analysis.saved_tensors import Save, SavedTensorChange, is_step
from tensorlens.analysis.shared_frame import shared_frame
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.diagnostics.saved_tensors._copy_advice import fixes_of_a_write
from tensorlens.diagnostics.saved_tensors._step_advice import Overwritten, fixes_of_a_step
from tensorlens.diagnostics.saved_tensors._update_advice import fixes_of_an_update
from tensorlens.diagnostics.shared.detached_state import detaching
from tensorlens.diagnostics.shared.edits.statements import inserted_after
from tensorlens.diagnostics.shared.kept import line_from
from tensorlens.diagnostics.shared.wording import fix, named
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
    parameter = parameter_of(facts, change, event)
    if not is_step(facts, event) and parameter is None:
        return tuple(fixes_of_a_write(facts, change, event, change.first.write.tensor))
    old = state_of_an_earlier_pass(facts, failure, save)
    if old is not None:
        return (_detached(facts, *old),)
    frame = shared_frame(facts, event, failure)
    case = Overwritten(event, failure, frame, change)
    if is_step(facts, event):
        return tuple(fixes_of_a_step(facts, case))
    return tuple(fixes_of_an_update(facts, change, case, parameter or 0))


def parameter_of(facts: TraceIndex, change: SavedTensorChange, event: Call) -> int | None:
    """Returns the leaf that a call wrote or that was saved; None if the memory is of no leaf that requires grad."""
    written = None if change.first is None else change.first.write.tensor
    return next((n for n in (written, change.save.tensor) if _is_trained(facts, n, event.index)), None)


def _is_trained(facts: TraceIndex, number: int | None, at: int) -> bool:
    """Returns whether the tensor is a leaf that requires grad. Such a leaf is written on purpose, with recording
    off."""
    return number is not None and facts.is_leaf_requiring_grad(number, at)


# --- a graph of an earlier pass --------------------------------------------------------------------------------------


def state_of_an_earlier_pass(facts: TraceIndex, failure: Failure, save: Save) -> tuple[Carried, Backward] | None:
    """Finds the state that carries a graph from one pass to the next, and the last pass before the one that failed."""
    failed = failed_backward(facts, failure)
    if failed is None or save.call is None:
        return None
    passes = [b for b in facts.backwards if save.call.index < b.index < failure.index and b.site == failure.site]
    found = carried(facts, failed, passes[-1], save.call) if passes else None
    return None if found is None else (found, passes[-1])


def _detached(facts: TraceIndex, found: Carried, after: Backward) -> Fix:
    """Advises to detach a carried tensor after the pass that it must not carry the graph over."""
    name, place = name_in_function(facts, found, after.site), facts.span(after.site)
    file = facts.trace.sites[after.site].span.file
    code = None
    if name is not None:
        owner, targets = name.partition("[")[0], facts.trace.sites[found.made.site].targets
        code = detaching(facts, name, (name,), file, found.made.op == "torch.lstm" and owner in targets)
    if code is not None:
        edit = None if place is None else inserted_after(facts, place.file, place.line, code)
        state = code.partition(" ")[0]
        text = f"put `{code}` below this line: `{state}` leads back to an earlier pass, which then gets no gradient"
        return fix(f"{text} from later ones", *([] if edit is None else [edit]), place=place)
    known = named(facts, found.tensor, found.made.index)
    return fix(
        f"`detach()` {known} (made in {line_from(facts, found.made.site, after.site)}) after this backward: it leads "
        "back to an earlier pass, which then gets no gradient from later ones",
        place=place,
    )
