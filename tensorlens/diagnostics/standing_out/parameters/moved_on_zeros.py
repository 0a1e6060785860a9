"""Names parameters whose gradients the script sets to zero at some steps, which move them all the same."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensorlens.analysis.lineage import ancestry
from tensorlens.analysis.literal_values import number_of
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.cleared_gradients import calls_between
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.measured import MeasuredTraining, ParameterRow
from tensorlens.analysis.training.timeline import GRAD_SET, Moment
from tensorlens.diagnostics.shared.standing_out_text import listed, stands_out
from tensorlens.diagnostics.shared.wording import as_written
from tensorlens.records.callbacks import Registration
from tensorlens.records.model import Backward, Call
from tensorlens.records.observations import Step
from tensorlens.records.report import Label, StandingOut
from tensorlens.records.training import OptimizerGroup, StepsOnZeros

_COMPARISONS = frozenset("eq ne gt lt ge le sign equal".split())
_MAX_CALLS = 60
_Cause = tuple[str, Label | None]


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    """Finds these parameters. Those with no other gradient at any step are named by another sentence."""
    groups: dict[tuple[object, ...], list[ParameterRow]] = {}
    causes: dict[tuple[object, ...], tuple[StepsOnZeros, OptimizerGroup, _Cause]] = {}
    for count in training.facts.trace.inspection.on_zeros:
        row, group = training.row(count.tensor), _group(training, count)
        if count.number != training.measured.number or row is None or group is None or row.is_zero:
            continue
        cause = _zeroed(training, row)
        if cause is not None:
            key: tuple[object, ...] = (group.optimizer, group.group, cause[0], count.moved, _by(group, count))
            groups.setdefault(key, []).append(row)
            causes[key] = count, group, cause
    for key, rows in groups.items():
        yield _sentence(training, rows, *causes[key])


def _group(training: MeasuredTraining, count: StepsOnZeros) -> OptimizerGroup | None:
    own = (group for group in training.groups if group.optimizer == count.optimizer)
    return next((group for group in own if count.tensor in group.parameters), None)


def _zeroed(training: MeasuredTraining, row: ParameterRow) -> _Cause | None:
    """Finds the line that changes the gradient between a pass and a step that found only zeros."""
    facts = training.facts
    noted = {each.index for each in facts.trace.inspection.of_zeros if each.tensor == row.tensor}
    for step in training.training.steps:
        if step.index not in noted or row.tensor not in step.parameters:
            continue
        filled = training.training.last_moment(row.tensor, step.index, "fill", "update")
        if filled is None or filled.kind != "fill":
            continue
        calls = list(_changes(training, row.tensor, filled, step))
        if not calls:
            hook = _hook(training, row.tensor, filled.index)
            if hook is not None:
                label = facts.label("hook_registered_here", hook.site, "the hook is registered here")
                return "a hook changes", label
            continue
        call = next((call for call in calls if call.op.endswith("zero_")), calls[-1])
        if _keeps_some(training, call):
            return None
        label = facts.label("modified_here", call.site, "changes the gradient before the step", call.index)
        return f"{as_written(facts, call)} changes", label
    return None


def _changes(training: MeasuredTraining, leaf: int, filled: Moment, step: Step) -> Iterator[Call]:
    """Yields the calls that change a gradient between a pass and a step, also those through an alias of it.

    Clipping multiplies all gradients at once, and makes no zeros of other values, as any factor but 0.
    """
    facts, gradient = training.facts, step.gradients[step.parameters.index(leaf)]
    if gradient is None:
        return
    storage, event = facts.storage_of(gradient, step.index), filled.event
    inside = facts.calls_between(event.started, filled.index) if isinstance(event, Backward) else ()
    set_by_hook = (call for call in inside if call.op.endswith(".zero_"))
    for call in (*set_by_hook, *calls_between(facts, filled.index, step.index)):
        written = {facts.storage_of(write.tensor, call.index) for write in call.writes}
        if "_foreach_" in call.op and not _makes_zeros(facts, call):
            continue
        is_set = call.op == GRAD_SET and call.inputs[0].tensor == leaf
        if is_set or (storage is not None and storage in written):
            yield call


def _keeps_some(training: MeasuredTraining, call: Call) -> bool:
    """Returns whether a call multiplies by a mask that is computed from gradients, as one of those that agree: it is
    zero as a whole by chance only."""
    facts = training.facts
    changed = {write.tensor for write in call.writes}
    masks = [access.tensor for access in call.inputs if access.tensor not in changed]
    if op_name(call) not in ("mul", "imul") or len(masks) != 1:
        return False
    above = list(ancestry(facts, masks[0], call.index, _MAX_CALLS))
    is_compared = any(op_name(made) in _COMPARISONS for _, made in above)
    return is_compared and any(made.op == "autograd.grad" or ".grad.__get__" in made.op for _, made in above)


def _makes_zeros(facts: TraceIndex, call: Call) -> bool:
    """Returns whether a call that changes many tensors at once sets them to zero, by its name or a written factor."""
    if call.op.endswith("_foreach_zero_"):
        return True
    node, site = facts.node_at(call.site), facts.trace.sites[call.site]
    is_product = call.op.endswith("_foreach_mul_") and isinstance(node, ast.Call) and len(node.args) > 1
    return is_product and isinstance(node, ast.Call) and number_of(facts, site.span.file, node.args[1]) == 0


def _hook(training: MeasuredTraining, leaf: int, filled: int) -> Registration | None:
    """Returns the hook of a leaf that returned another gradient in the pass that filled it."""
    callbacks = training.facts.trace.callbacks
    known = {each.id: each for each in callbacks.registrations if each.kind == "tensor hook" and each.target == leaf}
    before = max((event.index for event in training.facts.backwards if event.index < filled), default=-1)
    for run in callbacks.runs:
        changed = any(value.tensor is not None and value.tensor not in run.given for value in run.values)
        if run.registration in known and before < run.index <= filled and changed:
            return known[run.registration]
    return None


def _by(group: OptimizerGroup, count: StepsOnZeros) -> str:
    """Says what moves a parameter without a gradient, as the steps found it."""
    decay = f"weight decay ({group.weight_decay:g})" if group.weight_decay else "weight decay"
    pairs = ((decay, count.decayed), ("momentum", count.carried))
    causes = [name if n == count.moved else f"{name} (in {n:,} of them)" for name, n in pairs if n]
    return " and ".join(causes) if causes else f"`{group.name}` itself"


def _sentence(
    training: MeasuredTraining, rows: list[ParameterRow], count: StepsOnZeros, group: OptimizerGroup, cause: _Cause
) -> StandingOut:
    steps = "step" if group.steps == 1 else "steps"
    gradient = "gradient is" if len(rows) == 1 else "gradients are"
    text = (
        f"{count.moved:,} of {group.steps:,} {steps} of `{group.name}` {'moves' if count.moved == 1 else 'move'} "
        f"{listed(rows)} by {_by(group, count)}, although the {gradient} exactly zero there: {cause[0]} the "
        f"{gradient.split()[0]} before the step"
    )
    made = training.facts.label("optimizer_made_here", group.site, f"`{group.name}` is made here")
    return stands_out(text, cause[1], made)
