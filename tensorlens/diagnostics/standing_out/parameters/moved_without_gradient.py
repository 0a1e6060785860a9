"""Names parameters that moved where their gradients were missing or zero, and what moved them."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from tensorlens.analysis.lineage import ancestry
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.cancelled_biases import is_cancelled_bias
from tensorlens.analysis.training.changed_gradients import is_clip
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.measured import MeasuredTraining, ParameterRow
from tensorlens.analysis.training.parameters.masking_hooks import masking_hook
from tensorlens.analysis.training.timeline import GRAD_READ, GRAD_SET
from tensorlens.analysis.training.value_ranges import is_zero_or_one
from tensorlens.diagnostics.shared.standing_out_text import listed, stands_out
from tensorlens.records.model import Call
from tensorlens.records.report import Label, StandingOut
from tensorlens.records.training import OptimizerGroup

_KEEPING = frozenset("nan_to_num clamp clip add iadd sub isub".split())
_MAX_CALLS = 64
_PRODUCTS = frozenset(("mul", "div", "imul", "itruediv"))


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    """Finds whole parameters that moved without a gradient, and parts whose gradient the script set to zero.

    Weight decay moves every row of an embedding, also those that no batch used: a part alone is nothing unusual. Lines
    that write to a parameter may be all that moves it, as those of an average of other ones, or of a mask of weights.
    """
    whole: dict[tuple[int, int], list[ParameterRow]] = {}
    for row in training.rows:
        movement, group = row.movement, row.group
        if movement is None or group is None or not row.is_stepped or not movement.unreached_moved:
            continue
        if training.writes(row.tensor):
            continue
        if movement.unreached == movement.elements:
            if is_cancelled_bias(training, row) and _masked(training, row) is None:
                continue
            whole.setdefault((group.optimizer, group.group), []).append(row)
        elif (masked := _masked(training, row)) is not None:
            yield _part(training, row, masked)
    for rows in whole.values():
        yield _whole(training, rows)
    yield from _of_later_steps(training)


def _touches(training: MeasuredTraining, row: ParameterRow) -> list[Call]:
    """Returns the calls with which the script changed the gradient of a parameter between a pass and a step.

    Clipping and other products with one number make no zeros of other values, and what is computed from other gradients
    has zeros of its own.
    """
    moments = training.training.moments.get(row.tensor, ())
    calls = [m.event for m in moments if m.kind == "touch" and isinstance(m.event, Call) and not m.event.within]
    scaling = {call.site for call in calls if is_clip(training, call.site)}
    calls = [call for call in calls if call.site not in scaling and not _is_scaling(training.facts, call)]
    calls = [call for call in calls if not _is_guard(training.facts, call)]
    return [call for call in calls if call.op != GRAD_SET or _is_of_its_own(training.facts, row.tensor, call)]


def _is_guard(facts: TraceIndex, call: Call) -> bool:
    """Returns whether a call writes at places that are computed from the gradient, as `grad[grad.isnan()] = 0` does."""
    written = {write.tensor for write in call.writes}
    others = [access.tensor for access in call.inputs if access.tensor not in written]
    masks = [each for each in others if facts.tensor(each).dtype == "bool"]
    above = (made for each in masks for _, made in ancestry(facts, each, call.index, _MAX_CALLS))
    return any(access.tensor in written for made in above for access in made.inputs)


def _is_of_its_own(facts: TraceIndex, leaf: int, call: Call) -> bool:
    """Returns whether the gradient that a call sets is computed from the one that the leaf has."""
    made = next((m for access in call.inputs[1:] for m in facts.producers(access.tensor, call.index)[:1]), None)
    if made is not None and _is_scaling(facts, made):
        return False
    above = (made for access in call.inputs[1:] for _, made in ancestry(facts, access.tensor, call.index, _MAX_CALLS))
    return any(made.op == GRAD_READ and made.inputs[0].tensor == leaf for made in above)


def _is_scaling(facts: TraceIndex, call: Call) -> bool:
    """Returns whether a call makes no zeros of other values."""
    others = [prod(facts.tensor(access.tensor).shape) for access in call.inputs[1:]]
    is_product = op_name(call) in _PRODUCTS and all(size == 1 for size in others)
    return "_foreach_" in call.op or is_product or op_name(call) in _KEEPING


def _cause(training: MeasuredTraining, row: ParameterRow) -> tuple[str, Label | None]:
    """Says what can have moved a parameter without a gradient, with its line."""
    facts, group = training.facts, row.group
    assert group is not None
    made = facts.label("optimizer_made_here", group.site, f"`{group.name}` is made here")
    decays = bool(group.weight_decay) and row.statistics is not None and row.statistics.filled > 0
    if decays:
        return f"by weight decay ({group.weight_decay:g})", made
    moments = training.training.moments.get(row.tensor, ())
    steps = any(isinstance(m.event, Call) and m.event.within and m.kind == "update" for m in moments)
    return (f"by `{group.name}` itself" if steps else "in a way that is not recorded"), made


def _whole(training: MeasuredTraining, rows: list[ParameterRow]) -> StandingOut:
    cause, label = _cause(training, rows[0])
    filled = any(row.statistics is not None and row.statistics.filled for row in rows)
    what = "only gradients of zeros" if filled else "no gradient"
    verb = "is" if len(rows) == 1 else "are"
    return stands_out(f"{listed(rows)} had {what} at any step, and {verb} moved {cause}", label)


def _part(training: MeasuredTraining, row: ParameterRow, changed: Label | None) -> StandingOut:
    cause, label = _cause(training, row)
    movement = row.movement
    assert movement is not None
    count = f"{movement.unreached_moved:,} of {movement.elements:,} elements"
    text = f"{count} of `{row.name}` had gradients of zeros at each step, and are moved {cause}"
    return stands_out(text, label, changed)


def _of_later_steps(training: MeasuredTraining) -> Iterator[StandingOut]:
    """Finds parts that the steps of one more optimizer move, after others have trained them: the script sets their
    gradients to zero from its first step on."""
    found: dict[tuple[int, int | None], list[tuple[ParameterRow, OptimizerGroup, Label]]] = {}
    for row in training.rows:
        if row.movement is None or not row.movement.last[2] or row.movement.last[1] == row.movement.elements:
            continue
        groups = (group for group in training.groups if group.optimizer == row.movement.last[0])
        group = next((group for group in groups if row.tensor in group.parameters), None)
        steps = training.facts.trace.inspection.steps
        if group is None or not group.weight_decay > 0 or not group.steps > 1 or group.turns[1] > len(steps):
            continue
        since = steps[group.turns[0] - 1].index
        masked = None if training.written_after(row.tensor, since) else _masked_after(training, row, since)
        if masked is not None:
            found.setdefault((group.optimizer, masked.span.line), []).append((row, group, masked))
    for parts in found.values():
        rows, (_, group, masked) = [row for row, *_ in parts], parts[0]
        moved, elements = (sum(counts) for counts in zip(*map(_counts, rows), strict=True))
        text = (
            f"{moved:,} of {elements:,} elements of {listed(rows)} had gradients of zeros at each of the "
            f"{group.steps:,} steps of a later `{group.name}`, and are moved by weight decay ({group.weight_decay:g})"
        )
        made = training.facts.label("optimizer_made_here", group.site, f"this `{group.name}` is made here")
        yield stands_out(text, made, masked)


def _counts(row: ParameterRow) -> tuple[int, int]:
    assert row.movement is not None
    return row.movement.last[2], row.movement.elements


def _masked(training: MeasuredTraining, row: ParameterRow) -> Label | None:
    """Names what sets parts of the gradient of a parameter to zero: a line, or a hook."""
    touched = _touches(training, row)
    if touched:
        site, index = touched[-1].site, touched[-1].index
        return training.facts.label("modified_here", site, "the gradient is changed here", index)
    return _hooked(training, row)


def _masked_after(training: MeasuredTraining, row: ParameterRow, since: int) -> Label | None:
    """Names a line that multiplies the gradient of a parameter by one mask after an event, or a hook that masks it."""
    facts = training.facts
    touched = [call for call in _touches(training, row) if call.index > since]
    masks = {
        access.tensor
        for call in touched
        for access in call.inputs
        if access.tensor not in {write.tensor for write in call.writes}
        and is_zero_or_one(facts, access.tensor, call.index)
    }
    if touched and len(masks) == 1:
        site, index = touched[-1].site, touched[-1].index
        return facts.label("modified_here", site, "the gradient is changed here", index)
    return _hooked(training, row, since)


def _hooked(training: MeasuredTraining, row: ParameterRow, since: int = 0) -> Label | None:
    """Names the hook that sets parts of the gradient of a parameter to zero after an event."""
    hook = masking_hook(training.facts, row.tensor, since)
    if hook is None:
        return None
    return training.facts.label("hook_registered_here", hook.site, "this hook masks the gradient")
