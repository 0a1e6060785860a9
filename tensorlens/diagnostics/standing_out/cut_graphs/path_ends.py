"""Names parameters that no gradient ever reached, and where their path to the loss ends."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.naming.assignments import assigned_to
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.analysis.training.replaced_parameters import replaced_parameters
from tensorlens.analysis.training.slope_constants import is_constant_of_slope
from tensorlens.analysis.training.untrained import Untrained, untrained
from tensorlens.diagnostics.shared.custom_function_runs import missing_gradients
from tensorlens.diagnostics.shared.cut_facts import recording_off, result_dtype
from tensorlens.diagnostics.shared.cut_off_parameters import end_cause, end_labels
from tensorlens.diagnostics.shared.optimizers import born, has_conditional_step
from tensorlens.diagnostics.shared.standing_out_text import listed, stands_out
from tensorlens.records.report import Label, StandingOut

_DETACHING = ("Tensor.detach", "torch.detach", "Tensor.data.", "Tensor.__deepcopy__")


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    """Finds these parameters, one sentence for each call that ends paths and for each group of an optimizer.

    A parameter that no optimizer holds is named only if the script does not keep gradients from it on purpose: a
    teacher and a target network run under `no_grad`, are detached, or give whole numbers.
    """
    groups: dict[object, list[Untrained]] = {}
    replaced = {each.old for each, _ in replaced_parameters(training.training)}
    reported = {call.op for _, call, _ in missing_gradients(training.facts)}
    for each in untrained(training):
        if each.row.tensor in replaced or (each.call is not None and each.call.op in reported):
            continue
        if each.kind == "never" and _has_not_begun(training.facts, each):
            continue
        if each.end is not None and is_constant_of_slope(training.facts, each.end):
            continue
        if each.kind and (each.row.group is not None or _is_surprising(training, each)):
            held = None if each.row.group is None else (each.row.group.optimizer, each.row.group.group)
            site = None if each.call is None else each.call.site
            groups.setdefault((each.kind, site, held), []).append(each)
    for group in groups.values():
        yield _sentence(training, group)


def _has_not_begun(facts: TraceIndex, each: Untrained) -> bool:
    """Returns whether the optimizer of a parameter made no step, and a line below a condition would make one."""
    group = each.row.group
    span = None if group is None or group.steps else facts.span(group.site)
    if span is None:
        return False
    name = assigned_to(facts.trace.sources.get(span.file, ""), span)
    return bool(name) and has_conditional_step(facts, span.file, name or "")


def _is_surprising(training: MeasuredTraining, each: Untrained) -> bool:
    if each.end is None or each.kind in ("unused", "unasked"):
        return False
    cut = each.end.cut
    is_deliberate = recording_off(cut) or cut.call.op.startswith(_DETACHING) or result_dtype(training.facts, cut)
    return each.kind != "cut" or not is_deliberate


def _sentence(training: MeasuredTraining, group: list[Untrained]) -> StandingOut:
    facts, first = training.facts, group[0]
    rows = [each.row for each in group]
    them = "it" if len(rows) == 1 else "them"
    text = f"no gradient ever reached {listed(rows)}: "
    made = facts.label("leaf_made_here", born(facts, rows[0].tensor), "made here")
    labels: list[Label | None]
    if first.end is not None:
        name = f"`{rows[0].name}`"
        loss = facts.names.quoted(first.end.backward.roots[0].tensor, first.end.backward.index)
        text += end_cause(facts, first.end, loss, them)
        labels = list(end_labels(facts, first.end, name))[:1]
    elif first.call is not None:
        text += f"the script uses {them} only where gradients are off"
        labels = [facts.label("graph_cut_here", first.call.site, "used here", first.call.index)]
    else:
        text += f"no recorded call uses {them}"
        labels = [made]
    group_held = rows[0].group
    if group_held is not None:
        held = f"`{group_held.name}` is made here"
        labels.append(facts.label("optimizer_made_here", group_held.site, held))
    else:
        text += f"; no optimizer holds {them}"
    return stands_out(text, *labels)
