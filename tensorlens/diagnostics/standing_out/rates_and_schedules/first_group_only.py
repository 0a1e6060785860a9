"""Names lines that change the learning rate of one parameter group, while the others keep the rate of the beginning."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator

from tensorlens.analysis.code_around import function_around, statement_around
from tensorlens.analysis.naming.name_words import words_of_last
from tensorlens.analysis.naming.syntax import last_name
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.analysis.training.written_rates import place_of_group, written_rates
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.diagnostics.shared.wording import ordinal
from tensorlens.records.model import Span
from tensorlens.records.report import Label, StandingOut
from tensorlens.records.training import OptimizerGroup

_MIN_STEPS = 3
_PLAIN = frozenset("net model optim optimizer opt rate lr params parameters group groups self step set".split())


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    """Finds `optimizer.param_groups[0]["lr"] = ...`, and other forms of it, where an optimizer has several groups."""
    facts = training.facts
    written = list(written_rates(facts))
    if len(written) != 1 or facts.trace.inspection.schedules:
        return
    file, node, span = written[0].file, written[0].node, written[0].span
    place = place_of_group(facts, file, written[0].group)
    if place is None:
        return
    groups: dict[int, list[OptimizerGroup]] = defaultdict(list)
    for group in training.groups:
        groups[group.optimizer].append(group)
    for of_optimizer in groups.values():
        chosen = next((group for group in of_optimizer if group.group == place % len(of_optimizer)), None)
        others = [group for group in of_optimizer if group is not chosen and group.parameters]
        if (
            chosen is None
            or _is_for_part(facts, span, chosen.site)
            or not others
            or chosen.steps < _MIN_STEPS
            or chosen.is_shared
            or _is_frozen(facts, span, chosen)
        ):
            continue
        made = {group.made_rate for group in of_optimizer}
        if len(made) == 1 and chosen.rates[0] < chosen.rates[1] and all({*each.rates} == made for each in others):
            code = facts.code_of(node, file) + (" = ..." if isinstance(node, ast.Subscript) else "")
            keeps = "the other one keeps" if len(others) == 1 else f"the {len(others)} others keep"
            text = f"`{code}` changes the learning rate of the {ordinal(chosen.group + 1)} group of `{chosen.name}` "
            text += f"only: {keeps} {next(iter(made)):g} at each of {chosen.steps:,} steps"
            yield stands_out(
                text,
                Label("state_changed_here", span, "one of the groups"),
                facts.label("optimizer_made_here", chosen.site, "the optimizer is made here"),
            )


def _is_frozen(facts: TraceIndex, span: Span, chosen: OptimizerGroup) -> bool:
    """Returns whether a line sets a rate of 0 or that of the others: a part that waits for the rest to learn."""
    statement = statement_around(facts, span)
    values = [] if statement is None else [node for node in ast.walk(statement) if isinstance(node, ast.IfExp)]
    ends = [end for value in values for end in (value.body, value.orelse)]
    is_choice = any(isinstance(end, ast.Constant) and end.value == 0 for end in ends)
    return is_choice or {*chosen.course} <= {0.0, chosen.made_rate}


def _is_for_part(facts: TraceIndex, span: Span, made: int | None) -> bool:
    """Returns whether the function around a line has a part of the model in its name, which the line that makes the
    optimizer has too: `warm_up_body()` and `body.parameters()`."""
    function, place = function_around(facts, span.file, span.line), facts.span(made)
    node = None if place is None else facts.names.syntax.node(place)
    if function is None or node is None:
        return False
    names = (last_name(each) for each in ast.walk(node) if isinstance(each, ast.Name | ast.Attribute))
    words = {word for name in names for word in words_of_last(name)}
    return not (words - _PLAIN).isdisjoint(words_of_last(function.name))
