"""Names lines that change the learning rate of one parameter group, while the others keep the rate of the beginning."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.diagnostics.shared.wording import ordinal
from tensorlens.records.model import Span
from tensorlens.records.report import Label, StandingOut
from tensorlens.records.source import text_of
from tensorlens.records.training import OptimizerGroup

_MIN_STEPS = 3


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    """Finds `optimizer.param_groups[0]["lr"] = ...` where an optimizer has several groups."""
    facts = training.facts
    written = list(_written(facts))
    place, span = written[0] if len(written) == 1 else (None, None)
    if place is None or span is None or facts.trace.inspection.schedules:
        return
    groups: dict[int, list[OptimizerGroup]] = defaultdict(list)
    for group in training.groups:
        groups[group.optimizer].append(group)
    for of_optimizer in groups.values():
        chosen = next((group for group in of_optimizer if group.group == place % len(of_optimizer)), None)
        others = [group for group in of_optimizer if group is not chosen and group.parameters]
        if chosen is None or not others or chosen.steps < _MIN_STEPS or chosen.is_shared:
            continue
        made = {group.made_rate for group in of_optimizer}
        if len(made) == 1 and chosen.rates[0] < chosen.rates[1] and all({*each.rates} == made for each in others):
            code = text_of(facts.trace.sources[span.file], span)
            keeps = "the other one keeps" if len(others) == 1 else f"the {len(others)} others keep"
            text = (
                f"`{code} = ...` changes the learning rate of the {ordinal(chosen.group + 1)} group of `{chosen.name}` "
            )
            text += f"only: {keeps} {next(iter(made)):g} at each of {chosen.steps:,} steps"
            yield stands_out(
                text,
                Label("state_changed_here", span, "one of the groups"),
                facts.label("optimizer_made_here", chosen.site, "the optimizer is made here"),
            )


def _written(facts: TraceIndex) -> Iterator[tuple[int | None, Span]]:
    """Yields each place of the program that writes a learning rate into a group, with the number of the group if it
    says one."""
    for file, tree in facts.trees():
        for node in ast.walk(tree):
            if not isinstance(node, ast.Subscript) or not isinstance(node.ctx, ast.Store) or not _is_lr(node.slice):
                continue
            group = node.value
            is_item = isinstance(group, ast.Subscript) and ast.unparse(group.value).endswith("param_groups")
            number = _number(group.slice) if is_item and isinstance(group, ast.Subscript) else None
            yield number, facts.span_of(node, file)


def _is_lr(key: ast.expr) -> bool:
    return isinstance(key, ast.Constant) and key.value == "lr"


def _number(index: ast.expr) -> int | None:
    value = ast.literal_eval(index) if isinstance(index, ast.Constant | ast.UnaryOp) else None
    return value if isinstance(value, int) else None
