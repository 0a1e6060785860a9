"""Names optimizers that never step, that step before there is a gradient, and groups that are frozen as a whole."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensorlens.analysis.code_around import loop_around_line
from tensorlens.analysis.naming.syntax import called_name, last_name
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.frozen import frozen_at
from tensorlens.analysis.training.measured import MeasuredTraining, ParameterRow
from tensorlens.analysis.training.run_summary import is_complete
from tensorlens.diagnostics.shared.optimizers import born
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.records.model import Gap
from tensorlens.records.observations import Step
from tensorlens.records.report import StandingOut
from tensorlens.records.training import OptimizerGroup

_MAKING = ("optim.", "nn.init.", "nn.parameter.", "nn.Parameter")  # calls that use no value of a parameter


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    facts = training.facts
    if training.training.is_hidden or facts.trace.inspection.switches:
        return
    optimizers: dict[int, list[OptimizerGroup]] = {}
    for group in training.groups:
        optimizers.setdefault(group.optimizer, []).append(group)
    for groups in optimizers.values():
        if not groups[0].steps:
            yield from _never_stepped(training, groups)
        elif not any(group.is_shared for group in groups):
            yield from _early(training, groups)
            for group in groups:
                yield from _frozen(training, group)


def _never_stepped(training: MeasuredTraining, groups: list[OptimizerGroup]) -> Iterator[StandingOut]:
    """Says that an optimizer made no step, unless another one that did holds its parameters too, or a step may have run
    unseen."""
    facts, first = training.facts, groups[0]
    numbers = {number for group in groups for number in group.parameters}
    others = [set(group.parameters) for group in training.groups if group.steps]
    is_optional = any(group.steps and group.site == first.site for group in training.groups)
    is_ended = facts.trace.script.outcome in ("ok", "exit")
    unseen = any(call.op == "GradScaler.step" for call in facts.calls)
    unseen |= any(isinstance(event, Gap) for event in facts.events)
    moved = any(training.writes(number) for number in numbers)
    if not training.measured.passes or not is_ended or unseen or moved or numbers & set().union(*others):
        return
    used = any(
        access.tensor in numbers for call in facts.calls if not call.op.startswith(_MAKING) for access in call.inputs
    )
    if is_optional or not used:
        return  # a function ran with another option, a part has not begun, or it serves to plot a schedule
    held = "1 parameter" if len(numbers) == 1 else f"{len(numbers)} parameters"
    label = facts.label("optimizer_made_here", first.site, "made here")
    yield stands_out(f"`{first.name}` makes no step, and holds {held}", label)


def _early(training: MeasuredTraining, groups: list[OptimizerGroup]) -> Iterator[StandingOut]:
    """Says that the first step of an optimizer ran before any backward pass, and found no gradient."""
    facts, name = training.facts, groups[0].name
    if not is_complete(facts.trace):
        return
    step = _first_step(training, groups)
    filled = min((training.statistics[n].filled for g in groups for n in g.parameters if n in training.statistics),
                 default=0)  # fmt: skip
    passed = any(event.index < step.index for event in facts.backwards) if step is not None else True
    if step is None or passed or not filled or any(gradient is not None for gradient in step.gradients):
        return
    if not any(_is_in_loop(facts, site) for site in facts.call_chain(step.site or 0)):
        return  # a step that pleases a scheduler, before the loop
    first = facts.backwards[0] if facts.backwards else None
    backward = None if first is None else facts.label("needed_here", first.site, "the first backward pass")
    label = facts.label("observed_here", step.site, "steps here")
    yield stands_out(f"the first step of `{name}` runs before any backward pass, and finds no gradient",
                     label, backward)  # fmt: skip


def _is_in_loop(facts: TraceIndex, site: int) -> bool:
    span = facts.span(site)
    return span is not None and loop_around_line(facts, span.file, span.line) is not None


def _first_step(training: MeasuredTraining, groups: list[OptimizerGroup]) -> Step | None:
    numbers = {number for group in groups for number in group.parameters}
    return next((step for step in training.training.steps if numbers.intersection(step.parameters)), None)


def _frozen(training: MeasuredTraining, group: OptimizerGroup) -> Iterator[StandingOut]:
    """Says that a group consists of parameters that are frozen and never had a gradient."""
    facts = training.facts
    rows = [training.row(number) for number in group.parameters]
    known = [row for row in rows if row is not None and _is_frozen(row)]
    if not rows or len(known) < len(rows):
        return
    at = frozen_at(facts, known[0].tensor)
    if at is None and all(_has_option(facts, row.tensor) for row in known):
        return
    own = [each for each in training.groups if each.optimizer == group.optimizer]
    if (len(own) > 1 and all(len(each.parameters) == 1 for each in own)) or _unfreezes(facts):
        return  # a group for each parameter, or a line that unfreezes some later
    frozen = facts.label("leaf_made_here", born(facts, known[0].tensor), "made here, and does not require grad")
    if at is not None:
        frozen = facts.label("flag_changed_here", at.site, "frozen here", at.index)
    made = facts.label("optimizer_made_here", group.site, f"`{group.name}` is made here")
    which = "the only parameter" if len(rows) == 1 else f"each of the {len(rows)} parameters"
    several = sum(each.optimizer == group.optimizer for each in training.groups) > 1
    whose = f"a group of `{group.name}`" if several else f"`{group.name}`"
    yield stands_out(f"{which} of {whose} is frozen, and never has a gradient", frozen, made)


def _unfreezes(facts: TraceIndex) -> bool:
    """Returns whether a line makes parameters require grad: `requires_grad_(True)`, or `p.requires_grad = True`."""
    for node in (node for _, tree in facts.trees() for node in ast.walk(tree)):
        value: ast.expr | None = None
        if isinstance(node, ast.Call) and called_name(node) == "requires_grad_":
            value = next(iter([*node.args, *(each.value for each in node.keywords)]), ast.Constant(True))
        elif isinstance(node, ast.Assign) and "requires_grad" in map(last_name, node.targets):
            value = node.value
        if value is not None and not (isinstance(value, ast.Constant) and value.value is False):
            return True
    return False


def _has_option(facts: TraceIndex, number: int) -> bool:
    """Returns whether an option of the program decides if a parameter requires grad: `requires_grad=learned`."""
    node = facts.node_at(born(facts, number))
    if not isinstance(node, ast.Call):
        return False
    values = [each.value for each in node.keywords if each.arg == "requires_grad"]
    if ast.unparse(node.func).endswith("Parameter"):
        values += node.args[1:2]
    return any(not isinstance(value, ast.Constant) for value in values)


def _is_frozen(row: ParameterRow) -> bool:
    return not row.requires_grad and not row.passes and (row.statistics is None or not row.statistics.filled)
