"""Names loads of an optimizer's state that replace the learning rate that the optimizer was made with."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensorlens.analysis.code_around import function_around
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.diagnostics.shared.learning_rate_text import lines_that_set_rates
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.diagnostics.shared.wording import code_at
from tensorlens.records.report import StandingOut

_RANDOM_STATES = frozenset(("set_state", "set_rng_state", "set_rng_state_all", "setstate"))


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    """Finds these loads, if all steps of all groups use the loaded rate.

    A function that loads the state of the random numbers as well lets a run go on exactly as it was, with its rate. So
    does a run whose rate lines of the program have changed, or whose optimizer was made with the same rate.
    """
    if any(lines_that_set_rates(training.facts)):
        return
    inspection = training.facts.trace.inspection
    scheduled = {each.optimizer for each in inspection.schedules}
    for each in (rate for rate in inspection.loaded_rates if not rate.is_scheduled):
        groups = [group for group in training.groups if group.optimizer == each.optimizer]
        is_last = each.number == training.measured.number
        if not is_last or each.optimizer in scheduled or not groups or not groups[0].steps:
            continue
        if len({(group.made_rate, group.rates) for group in groups}) > 1 or groups[0].rates != (each.loaded,) * 2:
            continue
        others = [group for group in training.groups if group.optimizer < each.optimizer]
        if any(group.name == groups[0].name and group.made_rate == each.made for group in others):
            continue
        if _sets_random_state(training.facts, each.site):
            continue
        steps = "its only step uses" if groups[0].steps == 1 else f"its {groups[0].steps} steps use"
        yield stands_out(
            f"{code_at(training.facts, each.site, 'Optimizer.load_state_dict')} replaces the learning rate of the new "
            f"`{groups[0].name}`, {each.made:g}, by the loaded one: {steps} {each.loaded:g}",
            training.facts.label("replaced_here", each.site, "loads another learning rate"),
            training.facts.label("optimizer_made_here", groups[0].site, "made with the first one"),
        )


def _sets_random_state(facts: TraceIndex, site: int | None) -> bool:
    span = None if site is None else facts.span(site)
    function = None if span is None else function_around(facts, span.file, span.line)
    names = {node.attr for node in ast.walk(function) if isinstance(node, ast.Attribute)} if function else set()
    return not names.isdisjoint(_RANDOM_STATES)
