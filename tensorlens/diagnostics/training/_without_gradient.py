"""How a parameter is told that no gradient ever came to: where its way to the loss is cut, and who steps it in vain."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tensorlens.analysis.facts import TraceIndex
from tensorlens.analysis.lineage import Cut
from tensorlens.analysis.training.discarded_outputs import is_discarded
from tensorlens.analysis.training.parameters_without_gradient import Starved, lost, starved, ways
from tensorlens.analysis.training.replaced_parameters import replaced_parameters
from tensorlens.analysis.training.timeline import DATA_SET, Training, training_of
from tensorlens.diagnostics.custom_functions import custom_function_none_gradient
from tensorlens.diagnostics.shared.graph_cuts import cut_fixes, cut_labels, cut_reason
from tensorlens.diagnostics.shared.optimizers import born, optimizer_label, optimizer_name, several
from tensorlens.diagnostics.shared.wording import finding, fix, op_text
from tensorlens.records.model import Diagnostic, Fix, Label
from tensorlens.records.observations import Step

Chosen = Callable[[Cut], bool]


def find_cut_off(facts: TraceIndex, code: str, chosen: Chosen) -> Iterator[Diagnostic]:
    """One finding for each cut of the kind of `code`. Where an optimizer steps, it says what is to be trained, and a
    parameter of its that is left out is a warning; where none does, what requires grad is told as a note. So is
    what lies behind the values that a hook takes, where the program throws the result away."""
    training = training_of(facts)
    if facts.trace.script.failure is not None or training.is_hidden:
        return
    stepped = _stepped(training)
    told = {f"{returned.evidence['function']}.apply" for returned in custom_function_none_gradient.find(facts)}
    found = [way for way in _ways(training, stepped) if chosen(way.cut) and way.cut.call.op not in told]
    whole = [way for way in found if way.number not in training.had_gradient]
    sites = {way.cut.call.site for way in whole}
    moved = {call.site for call in facts.calls if call.op == DATA_SET}
    beside = [way for way in found if way.number in training.had_gradient and way.cut.call.site not in sites | moved]
    partly = [way for way in beside if _is_partly(facts, way)]
    groups: dict[tuple[int, int], list[Starved]] = {}
    for way in (*whole, *partly):
        groups.setdefault((way.cut.call.site, way.backward.site), []).append(way)
    for group in groups.values():
        yield _report(training, code, group, stepped.get(group[0].number))


def find_unused(facts: TraceIndex, code: str) -> Iterator[Diagnostic]:
    """A note on the parameters of each optimizer that nothing was ever computed from."""
    training = training_of(facts)
    folded = len(facts.trace.events) <= facts.events[-1].index if facts.events else True
    if folded or facts.trace.script.failure is not None or training.is_hidden or not training.had_gradient:
        return
    stepped = _stepped(training)
    known = {way.number for way in _ways(training, stepped)}
    known |= {access.tensor for call in facts.calls if call.nodes[1] > call.nodes[0] for access in call.inputs}
    groups: dict[tuple[int, ...], list[int]] = {}
    for number, step in stepped.items():
        if number not in known:
            groups.setdefault(step.parameters, []).append(number)
    for group in groups.values():
        name, step = several(facts, group), stepped[group[0]]
        yield finding(
            code,
            "note",
            f"no gradient ever came to {name}: nothing was computed from it",
            f"`{optimizer_name(training, step)}` steps what it was given, and skips what has no gradient",
            [
                facts.label("leaf_made_here", born(facts, group[0]), f"{name} requires grad"),
                optimizer_label(training, step),
                facts.label("needed_here", step.site, f"this step finds no gradient of {name}"),
            ],
            evidence={"parameters": [facts.name(number) for number in group]},
        )


def _stepped(training: Training) -> dict[int, Step]:
    """The parameters that an optimizer steps in vain, each with the last such step; those replaced have their own
    finding."""
    replaced = {found.old for found, _ in replaced_parameters(training)}
    return {number: step for number, step in starved(training).items() if number not in replaced}


def _ways(training: Training, stepped: dict[int, Step]) -> list[Starved]:
    followed = list(ways(training, set(stepped) if training.steps else _leaves(training)))
    return followed + list(lost(training, set(stepped) - {way.number for way in followed}))


def _is_partly(facts: TraceIndex, way: Starved) -> bool:
    """Whether a cut beside an open way may be a mistake: comparisons have no derivative."""
    made = [facts.tensor(access.tensor).dtype for access in way.cut.call.outputs]
    return way.kind == "cut" and any(dtype.startswith("float") for dtype in made)


def _leaves(training: Training) -> set[int]:
    """The leaves that require grad at the end."""
    states = training.facts.trace.end.states
    return {state.tensor for state in states if state.requires_grad and state.is_leaf}


def _report(training: Training, code: str, group: list[Starved], step: Step | None) -> Diagnostic:
    facts, first = training.facts, group[0]
    name = several(facts, [found.number for found in group])
    loss = facts.names.quoted(first.backward.roots[0].tensor, first.backward.index)
    labels = [*_end(facts, first, name)]
    labels.append(facts.label("leaf_made_here", born(facts, first.number), f"{name}: {_required(first)}"))
    partly = first.number in training.had_gradient
    text = f"{op_text(first.backward.op)} from {loss} does not come to {name}" + (" that way" if partly else "")
    labels.append(facts.label("needed_here", first.backward.site, text))
    title = f"one of the ways from {name} to {loss} is cut" if partly else f"no gradient ever came to {name}"
    discarded = all(is_discarded(facts, way, training.had_gradient) for way in group)
    if step is not None:
        title += f", which `{optimizer_name(training, step)}` is to train"
        labels.append(optimizer_label(training, step))
    return finding(
        code,
        "warning" if step is not None and not discarded else "note",
        title,
        _why(facts, first, loss),
        labels,
        fixes=tuple(_fixes(facts, first, name)),
        evidence={"parameters": [facts.name(found.number) for found in group]},
    )


def _required(found: Starved) -> str:
    return "requires grad only later" if found.kind == "late" else "requires grad"


def _end(facts: TraceIndex, found: Starved, name: str) -> Iterator[Label | None]:
    """The line at which the way ends, and the switch behind it."""
    op = op_text(found.cut.call.op)
    if found.kind == "cut":
        yield from (label for label in cut_labels(facts, found.cut) if label and label.role != "leaf_made_here")
    elif found.kind == "late":
        yield facts.label("graph_cut_here", found.cut.call.site, f"{op} uses {name} before it requires grad")
    elif found.kind == "unused":
        text = f"what {op} computes from {name} goes into no value that backward starts from"
        yield facts.label("graph_cut_here", found.cut.call.site, text)
    else:
        yield facts.label("graph_cut_here", found.cut.call.site, f"{op} is given {name} and gives it no gradient")


def _why(facts: TraceIndex, found: Starved, loss: str) -> str:
    if found.kind == "cut":
        return f"on its way to {loss}: {cut_reason(facts, found.cut)}"
    if found.kind == "late":
        return "autograd records what requires grad at the time of the call; what was used before is a constant there"
    if found.kind == "unused":
        return f"{loss} is computed without it: backward fills the gradients of what its root is computed from"
    return "the call is recorded, and its derivative does not lead to this input"


def _fixes(facts: TraceIndex, found: Starved, name: str) -> Iterator[Fix]:
    if found.kind == "cut":
        yield from cut_fixes(facts, found.cut)
    elif found.kind == "late":
        yield fix(f"let {name} require grad before it is used")
    elif found.kind == "unused":
        yield fix(f"add what is computed from {name} to the loss, or leave {name} out of the optimizer")
    elif found.cut.call.op.endswith(".apply"):
        yield fix(f"pass {name} to {op_text(found.cut.call.op)} as an argument of its own and return its gradient")
