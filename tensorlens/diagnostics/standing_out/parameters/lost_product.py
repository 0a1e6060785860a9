"""Names products of parameters with a mask that new initial values overwrite."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.analysis.training.parameters.lost_products import lost_products
from tensorlens.analysis.training.run_summary import is_complete
from tensorlens.diagnostics.shared.standing_out_text import listed, stands_out
from tensorlens.diagnostics.shared.wording import as_written
from tensorlens.records.report import StandingOut


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    facts = training.facts
    if training.training.is_hidden or not is_complete(facts.trace):
        return
    for each in lost_products(training):
        them = "it" if len(each.rows) == 1 else "them"
        when = f"before any recorded call reads {them}"
        if each.is_scaled:
            when = f"after calls that read {them} only to change {them} further"
        results = "the result" if len(each.rows) == 1 else "the results"
        yield stands_out(
            f"{as_written(facts, each.product)} changes {listed(each.rows)}, and {as_written(facts, each.write)} "
            f"overwrites all of {results} {when}",
            facts.label("modified_here", each.write.site, "overwritten here", each.write.index),
            facts.label("value_made_here", each.product.site, "changed here", each.product.index),
        )
