"""Names recurrent states that a loop carries from one episode into the next."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.analysis.training.policies_and_values.episode_states import carried_states
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.records.report import Label, StandingOut


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    facts = training.facts
    if training.training.is_hidden or not training.training.steps:
        return
    for each in carried_states(facts):
        code, begin = (" ".join(facts.code_of(node, each.file).split()) for node in (each.statement, each.begin))
        yield stands_out(
            f"`{code}` goes on with the state of the episode before: `{begin}` begins new ones, and no line of the "
            f"loop sets `{each.state}` back",
            Label("value_made_here", facts.span_of(each.statement, each.file), "goes on through the ends"),
            Label("observed_here", facts.span_of(each.begin, each.file), "begins an episode"),
        )
