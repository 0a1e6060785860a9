"""Reports parameters that no gradient reached: where the path to the loss is cut, and which optimizer steps in vain."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tensorlens.analysis.lineage import Cut
from tensorlens.analysis.plain_values import may_require_grad, takes_no_value
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.discarded_outputs import is_discarded
from tensorlens.analysis.training.parameters_without_gradient import (
    PathEnd,
    moved_by_asked_gradients,
    parameters_without_gradient,
    path_ends,
    unused_path_ends,
)
from tensorlens.analysis.training.replaced_parameters import replaced_parameters
from tensorlens.analysis.training.slope_constants import is_constant_of_slope
from tensorlens.analysis.training.timeline import DATA_SET, Training, training_of
from tensorlens.diagnostics.shared.custom_function_runs import missing_gradients
from tensorlens.diagnostics.shared.cut_facts import written
from tensorlens.diagnostics.shared.graph_cuts import cut_cause, cut_detail, cut_fixes, cut_labels, cut_reason
from tensorlens.diagnostics.shared.optimizers import born, optimizer_label, optimizer_name, several
from tensorlens.diagnostics.shared.wording import finding, fix, named, op_text, source_text
from tensorlens.records.observations import Step
from tensorlens.records.report import Diagnostic, Fix, Label

Chosen = Callable[[Cut], bool]


def find_cut_off(facts: TraceIndex, code: str, chosen: Chosen) -> Iterator[Diagnostic]:
    """Makes one finding for each cut that `chosen` accepts.

    If an optimizer steps the parameter, it is meant to be trained, so the finding is a warning. Without an optimizer it
    is a note. It is also a note if the result is unused and no loss, or if only a hook uses the values on the way.
    """
    training = training_of(facts)
    if facts.trace.script.failure is not None or training.is_hidden:
        return
    stepped = _stepped(training)
    reported = {call.op for _, call, _ in missing_gradients(facts)}
    ends = (end for end in _path_ends_of(training, stepped) if chosen(end.cut) and end.cut.call.op not in reported)
    cut_off = [end for end in ends if not is_constant_of_slope(facts, end)]
    if not cut_off:
        return
    whole = [end for end in cut_off if end.number not in training.had_gradient]
    sites = {end.cut.call.site for end in whole}
    moved = {call.site for call in facts.calls if call.op == DATA_SET}
    beside = [end for end in cut_off if end.number in training.had_gradient and end.cut.call.site not in sites | moved]
    partly = [end for end in beside if _may_be_mistake(facts, end)]
    groups: dict[tuple[int, int], list[PathEnd]] = {}
    for end in (*whole, *partly):
        groups.setdefault((end.cut.call.site, end.backward.site), []).append(end)
    for group in groups.values():
        yield _report(training, code, group, stepped.get(group[0].number))


def find_unused(facts: TraceIndex, code: str) -> Iterator[Diagnostic]:
    """Makes a note of each optimizer's parameters that nothing was computed from.

    If parameters of an optimizer had gradients although nothing was computed from any, the program writes gradients
    itself, and leaves some out.
    """
    training = training_of(facts)
    folded = len(facts.trace.events) <= facts.events[-1].index if facts.events else True
    if folded or facts.trace.script.failure is not None or training.is_hidden or not training.had_gradient:
        return
    stepped = _stepped(training)
    used = {access.tensor for call in facts.calls if call.nodes[1] > call.nodes[0] for access in call.inputs}
    known = used | {end.number for end in _path_ends_of(training, stepped)}
    groups: dict[tuple[int, ...], list[int]] = {}
    for number, step in stepped.items():
        by_hand = used.isdisjoint(step.parameters) and not training.had_gradient.isdisjoint(step.parameters)
        if number not in known and not by_hand:
            groups.setdefault(step.parameters, []).append(number)
    for group in groups.values():
        name, step = several(facts, group), stepped[group[0]]
        them = "it" if len(group) == 1 else "them"
        yield finding(
            code,
            "note",
            f"no gradient ever reached {name}: no recorded operation uses {them}",
            f"`{optimizer_name(training, step)}` skips parameters that have no gradient",
            [
                facts.label("leaf_made_here", born(facts, group[0]), f"{several(facts, group[:1])} requires grad"),
                optimizer_label(training, step),
                facts.label("needed_here", step.site, f"this step finds no gradient of {them}"),
            ],
            evidence={"parameters": [facts.name(number) for number in group]},
        )


def _stepped(training: Training) -> dict[int, Step]:
    """Returns the parameters that an optimizer steps in vain, each with the last such step.

    Replaced parameters have a finding of their own.
    """
    replaced = {parameter.old for parameter, _ in replaced_parameters(training)}
    left_out = replaced | moved_by_asked_gradients(training)  # no path of these ends
    return {number: step for number, step in parameters_without_gradient(training).items() if number not in left_out}


def _path_ends_of(training: Training, stepped: dict[int, Step]) -> list[PathEnd]:
    """Finds where the paths from the parameters to a root end, for roots computed from them and then for the others."""
    followed = list(path_ends(training, set(stepped) if training.steps else _leaves(training)))
    return followed + list(unused_path_ends(training, set(stepped) - {end.number for end in followed}))


def _may_be_mistake(facts: TraceIndex, end: PathEnd) -> bool:
    """Returns whether a cut on one of several paths may be a mistake.

    It is none where the result can have no gradient, and where it takes only the shape of a tensor, as first states of
    zeros do.
    """
    made = [facts.tensor(access.tensor) for access in end.cut.call.outputs]
    by_value = end.cut.source is None or not takes_no_value(end.cut.call, end.cut.source)
    return end.kind == "cut" and by_value and any(map(may_require_grad, made))


def _may_be_meant(facts: TraceIndex, end: PathEnd) -> bool:
    """Returns whether a result that no root uses may be unused on purpose: it is no single number, as a loss is. So may
    one whose gradients a line asks for, but for those of parameters."""
    if end.kind == "unasked":
        return not any(facts.tensor(number).type.endswith("Parameter") for number in end.backward.inputs)
    return end.kind == "unused" and all(facts.tensor(access.tensor).shape for access in end.cut.call.outputs)


def _leaves(training: Training) -> set[int]:
    """Returns the leaves that require grad at the end. If there are sharded ones, the others may be whole copies that
    sharded training makes for a pass, and whose gradients it takes away."""
    states = training.facts.trace.end.states
    leaves = {state.tensor for state in states if state.requires_grad and state.is_leaf}
    return {number for number in leaves if training.facts.tensor(number).type == "DTensor"} or leaves


def _report(training: Training, code: str, group: list[PathEnd], step: Step | None) -> Diagnostic:
    facts, first = training.facts, group[0]
    names = several(facts, [end.number for end in group])
    name = several(facts, [first.number])
    loss = facts.names.quoted(first.backward.roots[0].tensor, first.backward.index)
    labels = [*end_labels(facts, first, name)]
    labels.append(facts.label("leaf_made_here", born(facts, first.number), f"{name} {_required(first)}"))
    partly = first.number in training.had_gradient
    them = "it" if len(group) == 1 else "them"
    text = f"backward from {loss} does not reach {them}" + (" that way" if partly else "")
    if first.kind != "unasked":
        labels.append(facts.label("needed_here", first.backward.site, text))
    what = f"one of the ways from {names} to {loss} is cut" if partly else f"no gradient ever reached {names}"
    discarded = all(is_discarded(facts, end, training.had_gradient) or _may_be_meant(facts, end) for end in group)
    if step is not None:
        labels.append(optimizer_label(training, step))
    return finding(
        code,
        "warning" if step is not None and not discarded else "note",
        f"{what}: {end_cause(facts, first, loss, them)}",
        _why(facts, first),
        labels,
        fixes=tuple(_fixes(facts, first, names, them)),
        evidence={"parameters": [facts.name(end.number) for end in group]},
        detail=cut_detail(facts, first.cut) if first.kind == "cut" else (),
    )


def _required(end: PathEnd) -> str:
    return "requires grad only later" if end.kind == "late" else "requires grad"


def end_cause(facts: TraceIndex, end: PathEnd, loss: str, them: str) -> str:
    """Says what ended a path, for a title: "`h.detach()` stopped the gradient"."""
    call = written(facts, end.cut.call)
    if end.kind == "cut":
        return cut_cause(facts, end.cut)
    if end.kind == "late":
        return f"{call} used {them} before {'it' if them == 'it' else 'they'} required grad"
    if end.kind == "unused":
        return f"{loss} does not use what {call} computed from {them}"
    if end.kind == "unasked":
        return (
            f"`{source_text(facts, end.backward.site)}` does not ask for {'its gradient' if them == 'it' else 'theirs'}"
        )
    return f"{call} gives {them} no gradient"


def end_labels(facts: TraceIndex, end: PathEnd, name: str) -> Iterator[Label | None]:
    """Labels the line at which the path ends, and the switch that ended it."""
    if end.kind == "cut":
        yield from (label for label in cut_labels(facts, end.cut) if label and label.role != "leaf_made_here")
    elif end.kind == "late":
        yield facts.label("graph_cut_here", end.cut.call.site, f"uses {name} before it requires grad")
    elif end.kind == "unused":
        yield facts.label("graph_cut_here", end.cut.call.site, "backward starts from nothing that uses this")
    elif end.kind == "unasked":
        yield facts.label("returned_here", end.backward.site, f"does not ask for the gradient of {name}")
        yield facts.label("called_here", end.cut.call.site, f"uses {name}")
    else:
        yield facts.label("graph_cut_here", end.cut.call.site, f"gives {name} no gradient")


def _why(facts: TraceIndex, end: PathEnd) -> str:
    if end.kind == "cut":
        return cut_reason(facts, end.cut)
    if end.kind == "late":
        return "what does not yet require grad at a call is a constant to that call"
    if end.kind == "unused":
        return "backward gives gradients only to what its root is computed from"
    if end.kind == "unasked":
        return "`torch.autograd.grad()` returns the gradients that it is asked for, and fills no `.grad`"
    return "the call is recorded, and its derivative does not lead to this input"


def _fixes(facts: TraceIndex, end: PathEnd, names: str, them: str) -> Iterator[Fix]:
    if end.kind == "cut":
        yield from cut_fixes(facts, end.cut)
    elif end.kind == "late":
        yield fix(
            f"let {names} require grad before {'it is' if them == 'it' else 'they are'} used",
            place=facts.span(end.cut.call.site),
        )
    elif end.kind == "unasked":
        yield fix(f"ask for the gradients of {names} here too, and use them", place=facts.span(end.backward.site))
        yield fix(f"if {names} {'is' if them == 'it' else 'are'} not to be trained, leave {them} out of the optimizer")
    elif end.kind == "unused":
        yield fix("add the result of this line to the loss", place=facts.span(end.cut.call.site))
        yield fix(f"if {names} {'is' if them == 'it' else 'are'} not to be trained, leave {them} out of the optimizer")
    elif end.cut.call.op.endswith(".apply"):
        if end.cut.source not in (None, end.number):
            names, them = named(facts, end.cut.source, end.cut.call.index), "it"
        one, its = ("an argument of its own", "its") if them == "it" else ("arguments of their own", "each")
        text = f"pass {names} to {op_text(end.cut.call.op)} as {one}, and return {its} gradient"
        yield fix(text, place=facts.span(end.cut.call.site))
