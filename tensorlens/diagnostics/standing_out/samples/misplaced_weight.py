"""Names samplers whose weights, one for each class, are those of other samples than the ones that they draw."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.analysis.training.samples.misplaced_weights import MisplacedWeights, misplaced_weights
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.diagnostics.shared.wording import as_written
from tensorlens.records.report import StandingOut


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    yield from (_sentence(training, each) for each in misplaced_weights(training.facts))


def _sentence(training: MeasuredTraining, found: MisplacedWeights) -> StandingOut:
    facts, sampled = training.facts, found.sampled
    sampler = "the sampler" if found.made is None else as_written(facts, found.made)
    counts = _joined(f"{count:,}" for count in sampled.counts)
    shares = _joined(f"{100 * share:.0f} %" for share in found.shares)
    return stands_out(
        f"{sampler} gets {len(sampled.values)} different weights, for {counts} samples, and the samples that are drawn "
        f"by them have the same mix of labels: {shares} of these have label {found.common}. So the weights are not "
        "those of the samples at their places in the data set",
        facts.label("value_made_here", None if found.made is None else found.made.site, "the weights"),
        facts.label("observed_here", sampled.site, "drawn by them here"),
    )


def _joined(parts: Iterator[str]) -> str:
    *first, last = parts
    return f"{', '.join(first)} and {last}"
