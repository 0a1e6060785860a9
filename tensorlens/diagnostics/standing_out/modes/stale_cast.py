"""Names regions of autocast that go on over steps of an optimizer, so that their casts of weights are outdated."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.analysis.training.modes.stale_casts import stale_casts
from tensorlens.diagnostics.shared.standing_out_text import listed, stands_out
from tensorlens.diagnostics.shared.wording import as_written, code_at
from tensorlens.records.report import StandingOut


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    facts, reported = training.facts, set[int]()
    if training.training.is_hidden or facts.trace.inspection.switches:
        return
    for each in stale_casts(training.training):
        rows = [row for number in each.weights if (row := training.row(number)) is not None and row.has_moved]
        if len(rows) < len(each.weights) or each.region.site in reported:
            continue
        reported.add(each.region.site)
        low = facts.tensor(each.used.outputs[0].tensor).dtype
        yield stands_out(
            f"{as_written(facts, each.used)} uses {low} copies of {listed(rows)} that {len(each.updates):,} updates "
            f"have made outdated: {code_at(facts, each.region.site, 'torch.autocast')} keeps the copies of the first "
            "use until its region ends",
            facts.label("observed_here", each.region.site, "entered here", each.region.index),
            facts.label("needed_here", each.used.site, "used after the updates", each.used.index),
            facts.label("replaced_here", each.updates[-1].event.site, "updated here", each.updates[-1].index),
        )
