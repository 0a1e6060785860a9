"""Names losses of a vector quantizer that scale down the error which trains the table, and not the commitment to it."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.densities_and_noise.code_terms import scaled_code_terms
from tensorlens.analysis.training.loss_calls import examined_passes, recorded_above
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.analysis.training.picked_entries import PICKED
from tensorlens.analysis.training.summand_weights import summands
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.diagnostics.shared.wording import as_written
from tensorlens.records.report import StandingOut


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    facts, reported = training.facts, set[int]()
    for backward in examined_passes(facts, with_asked=True):
        has_codes = any(op_name(call) in PICKED for call in recorded_above(facts, backward))
        for each in scaled_code_terms(facts, list(summands(facts, backward))) if has_codes else ():
            if each.codes.site in reported:
                continue
            reported.add(each.codes.site)
            share = f"{each.share:g}" if each.share else "the weight of a commitment"
            yield stands_out(
                f"{as_written(facts, each.scaled)} multiplies {as_written(facts, each.codes)}, which trains the table "
                f"of codes, by {share}, and {as_written(facts, each.values)}, which draws the values to the "
                "codes, counts in full: the weight of a commitment is meant for the latter",
                facts.label("value_made_here", each.scaled.site, "scaled down", each.scaled.index),
                facts.label("observed_here", each.codes.site, "trains the codes", each.codes.index),
                facts.label("needed_here", each.values.site, "trains the values", each.values.index),
            )
