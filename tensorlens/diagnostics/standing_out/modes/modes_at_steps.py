"""Names modules that steps train in eval mode, and running statistics that change although their layer is frozen."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator

from tensorlens.analysis.code_around import loop_around_line, scope_around, statement_around
from tensorlens.analysis.training.frozen import frozen_at, is_evaluated_alone
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.records.report import StandingOut
from tensorlens.records.training import EvaluatingSteps, FrozenStatistics

_MIN_STEPS = 2


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    """Finds steps whose optimizer has trained the same module in training mode before, and statistics that a run
    goes on to update."""
    facts = training.facts
    if training.training.is_hidden or facts.trace.inspection.switches:
        return
    number = training.measured.number
    switched: dict[tuple[int | None, int], list[EvaluatingSteps]] = defaultdict(list)
    for each in facts.trace.inspection.evaluating:
        if each.number == number:
            switched[each.site, each.optimizer].append(each)
    for layers in switched.values():
        if any(each.trained or each.steps >= _MIN_STEPS for each in layers) and not _is_meant(training, layers):
            yield _in_eval(training, layers)
    updated: dict[int | None, list[FrozenStatistics]] = defaultdict(list)
    for one in facts.trace.inspection.frozen_statistics:
        is_long = one.number == number and one.steps >= _MIN_STEPS
        if is_long and _is_fixed(training, one) and not _is_switched_alone(training, one):
            updated[one.switched].append(one)
    for found in updated.values():
        yield _updated(training, found)


def _is_meant(training: MeasuredTraining, layers: list[EvaluatingSteps]) -> bool:
    """Returns whether dropout alone is in eval mode at all steps, from a line beside the one that makes the optimizer:
    fine-tuning without dropout."""
    facts, first = training.facts, layers[0]
    made = next((group.site for group in training.groups if group.optimizer == first.optimizer), None)
    spans = (facts.span(made), facts.span(first.site))
    scopes = [scope_around(facts, span.file, span.line) for span in spans if span is not None]
    is_dropout = all("Dropout" in each.layer and not each.is_reader and not each.trained for each in layers)
    return is_dropout and len(scopes) > 1 and scopes[0] is scopes[1]


def _is_switched_alone(training: MeasuredTraining, each: FrozenStatistics) -> bool:
    """Returns whether a line calls `train()` of exactly the module that another one has frozen: `body.train()`. Nothing
    replaces a part of it, or trains one beside a frozen one that is only evaluated."""
    facts, node = training.facts, training.facts.node_at(each.switched)
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.func.attr != "train":
        return False
    call = next((call for n in each.parameters if (call := frozen_at(facts, n))), None)
    frozen = None if call is None else facts.span(call.site)
    module = ast.unparse(node.func.value)
    if call is None or frozen is None:
        return False
    around = [statement_around(facts, frozen), loop_around_line(facts, frozen.file, frozen.line)]
    ends = ("parameters", "named_parameters", "requires_grad_")
    freezes = {ast.unparse(part) for top in around if top is not None for part in ast.walk(top)}
    if not any(f"{module}.{end}" in freezes for end in ends):
        return False
    makers = (facts.node_at(group.site) for group in training.groups)
    given = (ast.unparse(part) for maker in makers if maker is not None for part in ast.walk(maker))
    parts = (part for _, tree in facts.trees() for part in ast.walk(tree) if isinstance(part, ast.Attribute))
    stored = (ast.unparse(part) for part in parts if isinstance(part.ctx, ast.Store))
    if any(text.startswith((f"{module}.", f"{module}[")) for text in (*given, *stored)):
        return False
    later = [step.index for step in training.training.steps if step.index > call.index]
    is_other = bool(later) and is_evaluated_alone(facts, call.site, (later[0], later[-1]), each.steps)
    return not (each.trains_part and is_other)


def _in_eval(training: MeasuredTraining, found: list[EvaluatingSteps]) -> StandingOut:
    layers = [each for each in found if not each.is_reader]
    facts, most = training.facts, max(layers or found, key=lambda each: each.steps)
    name = next(group.name for group in training.groups if group.optimizer == most.optimizer)
    label = facts.label("mode_entered_here", most.site, "switched to eval mode here")
    if not most.trained:
        which = f"`{most.layer}`" if most.layer == most.module else f"`{most.layer}` of `{most.module}`"
        text = f"{which} is in eval mode at each of {most.steps:,} steps of `{name}`, and in training mode at none"
        return stands_out(f"{text}: it was evaluated before", label)
    if not layers:
        of = "" if most.layer == most.module else f" of `{most.module}`"
        steps = f"{most.steps:,} {'step' if most.steps == 1 else 'steps'} of `{name}`"
        text = (
            f"`{most.layer}`{of}, which reads `self.training`, is in eval mode at {steps}, first at step {most.first}"
        )
        return stands_out(f"{text}, and was in training mode before", label)
    kinds = [f"`{each}`" for each in dict.fromkeys(each.layer for each in layers)]
    one = len({group.optimizer for group in training.groups if group.steps}) == 1
    text = f"{' and '.join(kinds)} of `{most.module}` {'run' if len(layers) > 1 else 'runs'} in eval mode for "
    text += f"{most.steps} of {most.trained + most.steps} steps of `{name}`"
    text += (
        f", first for step {most.first}, and in training mode for the others"
        if one
        else ", and in training mode before"
    )
    return stands_out(text, label)


def _is_fixed(training: MeasuredTraining, each: FrozenStatistics) -> bool:
    """Returns whether nothing changes the parameters of a layer while its statistics are updated."""
    steps = training.training.steps
    first = max(training.measured.steps - each.steps, 0)
    held = [group for group in training.groups if set(group.parameters) & set(each.parameters)]
    if any(group.turns[1] > first for group in held) or not steps:
        return False
    since = next((frozen.index for n in each.parameters if (frozen := frozen_at(training.facts, n))), steps[0].index)
    return not any(training.writes(number, since) for number in each.parameters)


def _updated(training: MeasuredTraining, found: list[FrozenStatistics]) -> StandingOut:
    facts, first = training.facts, found[0]
    kinds = " and ".join(f"`{each}`" for each in dict.fromkeys(each.layer for each in found))
    which = f"a frozen {kinds} change" if len(found) == 1 else f"{len(found)} frozen {kinds} layers change"
    frozen = next((call for n in first.parameters if (call := frozen_at(facts, n))), None)
    steps = max(each.steps for each in found)
    return stands_out(
        f"the running statistics of {which} for {steps} steps: forward updates them in training mode",
        facts.label("modified_here", first.site, "updated here"),
        None if frozen is None else facts.label("flag_changed_here", frozen.site, "frozen here", frozen.index),
        facts.label("mode_entered_here", first.switched, "switched to training mode here"),
    )
