"""Names functions that keep a tensor in a list or dict without a copy, which a layer then changes in place."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.training.changed_in_place.container_keeps import kept_items
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.diagnostics.shared.wording import as_written, op_text
from tensorlens.records.report import Label, StandingOut
from tensorlens.records.source import one_line, text_of


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    """Finds the output of a convolution in a dict before `nn.ReLU(inplace=True)`, where a loss reads it afterwards."""
    facts = training.facts
    for each in kept_items(facts):
        text = facts.trace.sources[each.kept.file]
        code, value = (one_line(text_of(text, span), 60).replace("`", "'") for span in (each.kept, each.value))
        yield stands_out(
            f"`{code}` keeps `{value}` without a copy, and {as_written(facts, each.change)} changes it in place, by "
            f"{op_text(each.change.op)}: {as_written(facts, each.reader)} then reads the changed values",
            Label("shared_here", each.kept, "kept here, without a copy"),
            facts.label("modified_here", each.change.site, "changes it in place", each.change.index),
            facts.label("needed_here", each.reader.site, "reads the changed values", each.reader.index),
        )
