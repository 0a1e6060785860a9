"""Names reshapes that put numbers of several samples, heads or places into one row, where a transpose is missing."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.analysis.training.rows_and_dimensions.mixed_dimensions import mixed_dimensions
from tensorlens.analysis.training.rows_and_dimensions.split_rows import split_rows
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.diagnostics.shared.wording import as_written, op_text
from tensorlens.records.report import StandingOut


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    facts = training.facts
    split = {each.reshape.site for each in split_rows(facts)} if training.training.steps else set[int]()
    for each in mixed_dimensions(facts):
        call, layer = each.reshape, each.layer
        if call.site in split:  # the sentence about heads says more
            continue
        if layer.index < call.index:
            label = facts.label("called_here", layer.site, "the result comes from this layer", layer.index)
        else:
            label = facts.label("needed_here", layer.site, "the input of this layer", layer.index)
        is_direct = facts.names.syntax.is_direct(facts.trace.sites[call.site], call.op)
        code = as_written(facts, call) if is_direct else f"{op_text(call.op)} in {as_written(facts, call)}"
        yield stands_out(
            f"{code} makes shape {each.after} of ({', '.join(each.dimensions)}) = {each.before} "
            f"without a transpose before it, which mixes numbers of several {each.mixed}",
            facts.label("value_made_here", call.site, "reshaped here", call.index),
            label,
        )
