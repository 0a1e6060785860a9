"""Names losses that add the logarithm of a scale with the wrong sign, or another number of times than the density."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.training.densities_and_noise.log_determinants import (
    has_other_sign,
    log_determinants,
    reduction_fault,
)
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.diagnostics.shared.wording import as_written, named
from tensorlens.records.report import StandingOut


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    """Finds them, one for each line; of a wrong sign, one for each line that computes the density."""
    facts, reported = training.facts, set[int]()
    for each in log_determinants(facts):
        if each.added.site in reported:
            continue
        scaled, added = as_written(facts, each.scaled), as_written(facts, each.added)
        name = named(facts, each.scale, each.scaled.index)
        if has_other_sign(each):
            if each.density.site in reported:
                continue
            reported.add(each.density.site)
            change = "grows" if each.grows else "shrinks"
            total = "the sum" if each.grows else "minus the sum"
            text = (
                f"{scaled} {change} with {name}, so its log-determinant is {total} "
                f"of {name}, beside the log-density of its result; the loss takes {added} with the other sign"
            )
        else:
            fault = reduction_fault(facts, each) if each.weight > 0 else ""
            if not fault:
                continue
            text = f"{scaled} scales each element by {name}, and {added} counts each in the loss {fault}"
        reported.add(each.added.site)
        yield stands_out(
            text,
            facts.label("value_made_here", each.added.site, "the log-determinant", each.added.index),
            facts.label("observed_here", each.scaled.site, "scaled here", each.scaled.index),
            facts.label("observed_here", each.joined.site, "added to the density", each.joined.index),
            facts.label("needed_here", each.density.site, "the density", each.density.index),
        )
