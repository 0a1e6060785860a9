"""Names sums along the steps of episodes that go on through their ends, and time limits that count as such ends."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.analysis.training.policies_and_values.episode_ends import merged_ends, unmasked_sums
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.records.report import Label, StandingOut


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    facts = training.facts
    if training.training.is_hidden or not training.training.steps:
        return

    def label(role: str, node: ast.AST, file: str, text: str) -> Label:
        return Label(role, facts.span_of(node, file), text)

    for each in unmasked_sums(facts):
        code, mask, reset = (facts.code_of(node, each.file) for node in (each.statement, each.mask, each.reset))
        known = f"`{mask}` masks another term of the loop" if each.is_read else f"no line of the loop reads `{mask}`"
        yield stands_out(
            f"`{code}` goes on from one episode to the one before it: {known}, and `{reset}` begins new episodes "
            "between the steps that it adds up",
            label("value_made_here", each.statement, each.file, "adds up through the ends"),
            label("observed_here", each.mask, each.file, "the end of an episode"),
            label("observed_here", each.reset, each.file, "begins an episode"),
        )
    for end in merged_ends(facts):
        code, mask = facts.code_of(end.merged, end.file), facts.code_of(end.mask, end.file)
        yield stands_out(
            f"`{code}` counts a time limit as an end, and no line uses the two apart: `{mask}` makes the value of the "
            f"next state zero also where only `{end.limit}` is true",
            label("value_made_here", end.merged, end.file, "joined here"),
            label("needed_here", end.mask, end.file, "leaves out the value"),
        )
