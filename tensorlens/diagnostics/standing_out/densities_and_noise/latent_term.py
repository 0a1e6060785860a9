"""Names variational autoencoders that sample by the variance as a deviation, or reduce their two terms unequally."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.densities_and_noise.latent_terms import (
    Divergence,
    Reductions,
    divergences,
    sample_with,
    unequal_reductions,
)
from tensorlens.analysis.training.loss_calls import examined_passes, recorded_above
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.analysis.training.summand_weights import summands
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.diagnostics.shared.wording import as_written, named
from tensorlens.records.model import Call
from tensorlens.records.report import StandingOut


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    facts, reported = training.facts, set[int]()
    for backward in examined_passes(facts):
        calls = recorded_above(facts, backward)
        found = list(summands(facts, backward)) if any(call.op.endswith(".exp") for call in calls) else []
        for each in divergences(facts, found):
            sampled = sample_with(facts, calls, each)
            if sampled is not None and sampled[0].site not in reported:
                reported.add(sampled[0].site)
                yield _sampled(facts, each, *sampled)
            unequal = unequal_reductions(facts, found, each)
            if unequal is not None and unequal.error.site not in reported:
                reported.add(unequal.error.site)
                yield _unequal(facts, each, unequal)


def _sampled(facts: TraceIndex, found: Divergence, product: Call, added: Call) -> StandingOut:
    name = named(facts, found.log_variance, found.variance.index)
    return stands_out(
        f"{as_written(facts, product)} scales noise by the variance of the loss, or its logarithm: "
        f"{as_written(facts, found.variance)} is added to the square of the mean there, so {name} is the logarithm of "
        "the variance, and the deviation is the exponential of half of it",
        facts.label("value_made_here", product.site, "scaled here", product.index),
        facts.label("observed_here", added.site, "added to the mean", added.index),
        facts.label("needed_here", found.variance.site, "the variance", found.variance.index),
    )


def _unequal(facts: TraceIndex, found: Divergence, unequal: Reductions) -> StandingOut:
    error, variance = as_written(facts, unequal.error), as_written(facts, found.variance)
    mean, total = ("error", "divergence") if unequal.is_mean else ("divergence", "error")
    return stands_out(
        f"the loss takes the mean of the {mean} over the {unequal.elements:,} elements of a sample, and the sum of the "
        f"{total}: the divergence with {variance} counts {unequal.elements:,} times as "
        f"{'much' if unequal.is_mean else 'little'} beside {error} as with equal reductions",
        facts.label("value_made_here", unequal.error.site, "the error", unequal.error.index),
        facts.label("observed_here", found.variance.site, "the divergence", found.variance.index),
    )
