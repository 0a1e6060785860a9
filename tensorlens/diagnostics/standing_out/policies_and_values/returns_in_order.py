"""Names returns in the order from the last step to the first one, and sums of the rewards before a step."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.analysis.training.policies_and_values.returns_order import ReturnsOrder, misplaced_returns
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.diagnostics.shared.wording import as_written
from tensorlens.records.report import Label, StandingOut


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    facts = training.facts
    if training.training.is_hidden or not training.training.steps:
        return

    def label(role: str, node: ast.AST, each: ReturnsOrder, text: str) -> Label:
        return Label(role, facts.span_of(node, each.file), text)

    for each in misplaced_returns(facts):
        append, steps = facts.code_of(each.put, each.file), facts.code_of(each.loop.iter, each.file)
        use = as_written(facts, each.use)
        if each.goes_back:
            text = (
                f"`{append}` puts the return of the last step first, as its loop runs over `{steps}`, and no line "
                f"turns the order: {use} meets the steps from the first one on"
            )
        else:
            text = (
                f"`{facts.code_of(each.running, each.file)}` runs from the first step on, over `{steps}`: {use} gives "
                "each step the sum of the rewards before it, and not of those after it"
            )
        main, other = (each.put, each.running) if each.goes_back else (each.running, each.put)
        yield stands_out(
            text,
            label("value_made_here", main, each, "put here" if each.goes_back else "added up here"),
            label("needed_here", each.loop.iter, each, "the order of the steps"),
            label("value_made_here", other, each, "the sum" if each.goes_back else "put here"),
            facts.label("observed_here", each.use.site, "used here", each.use.index),
        )
