"""Names targets of several steps that discount the value behind them by a single step."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.analysis.training.policies_and_values.step_returns import step_returns
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.records.report import Label, StandingOut


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    facts = training.facts
    if training.training.is_hidden or not training.training.steps:
        return
    for each in step_returns(facts):
        target = " ".join(facts.code_of(each.target, each.file).split())
        total = " ".join(facts.code_of(each.total, each.sum_file).split())
        discount = facts.code_of(each.discount, each.file)
        yield stands_out(
            f"`{target}` multiplies the value behind {each.steps} steps by `{discount}` once, and no line of the "
            f"program by the power of {each.steps}: `{total}` discounts the rewards of these steps by its powers",
            Label("value_made_here", facts.span_of(each.target, each.file), "discounts a single step"),
            Label("needed_here", facts.span_of(each.total, each.sum_file), "adds up the rewards of the steps"),
        )
