"""Names log-probabilities of samples that go on through `tanh`, without the slope of it or with the wrong sign."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.analysis.training.policies_and_values.squashed_samples import SquashedSample, squashed_samples
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.diagnostics.shared.wording import as_written, named
from tensorlens.records.report import StandingOut


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    facts = training.facts
    if training.training.is_hidden:
        return
    for each in squashed_samples(facts):
        density, squash = each.density, each.squash
        main, slope = each.joined or density, each.slope
        yield stands_out(
            _text(training, each),
            facts.label("needed_here", main.site, "the log-probability", main.index),
            facts.label("observed_here", slope.site, "the slope", slope.index) if slope is not None else None,
            facts.label("value_made_here", squash.site, "goes on from here", squash.index),
        )


def _text(training: MeasuredTraining, each: SquashedSample) -> str:
    facts = training.facts
    value, squash = named(facts, each.value, each.squash.index), as_written(facts, each.squash)
    density = as_written(facts, each.density)
    if each.joined is None or each.slope is None:
        return (
            f"{density} is the density of {value}, and {squash} goes on to the loss: no call computes the logarithm of "
            "the slope of `tanh()`, by which the density of the result differs"
        )
    joined = as_written(facts, each.joined)
    if each.kind == "sign":
        return (
            f"{joined} adds the logarithm of the slope of {squash} to {density}: the density of the result is that of "
            f"{value} minus this logarithm"
        )
    rows = facts.tensor(each.value).shape[0]
    return (
        f"{joined} changes each log-probability by the slopes of {squash} in all {rows:,} rows, whose logarithms are "
        "added up"
    )
