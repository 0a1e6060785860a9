"""Names forward hooks that keep an output without a copy, which the next layer then changes in place."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.training.changed_in_place.changed_outputs import changed_outputs
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.diagnostics.shared.wording import as_written, op_text
from tensorlens.records.report import Label, StandingOut
from tensorlens.records.source import one_line, text_of


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    """Finds a hook on a normalization before `nn.ReLU(inplace=True)`, where the kept output is read afterwards."""
    facts = training.facts
    for each in changed_outputs(facts):
        kept = each.kept
        code = one_line(text_of(facts.trace.sources[kept.span.file], kept.span), 60).replace("`", "'")
        output = f"the output of a `{kept.of}`" if kept.of else "the output of a module"
        yield stands_out(
            f"`{code}` keeps {output} without a copy, and {as_written(facts, each.change)} changes it in place, by "
            f"{op_text(each.change.op)}: {as_written(facts, each.reader)} then reads the changed values",
            Label("shared_here", kept.span, "kept here, without a copy"),
            facts.label("modified_here", each.change.site, "changes it in place", each.change.index),
            facts.label("needed_here", each.reader.site, "reads the changed values", each.reader.index),
            facts.label("hook_registered_here", kept.registration.site, "the hook"),
        )
