"""Names reshapes of NumPy arrays that mix the numbers of several channels, where a transpose is missing."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.analysis.training.rows_and_dimensions.reshaped_arrays import MixedArray, reshaped_arrays
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.diagnostics.shared.wording import as_written
from tensorlens.records.report import Label, StandingOut


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    yield from (_sentence(training, each) for each in reshaped_arrays(training.facts))


def _sentence(training: MeasuredTraining, found: MixedArray) -> StandingOut:
    facts = training.facts
    return stands_out(
        f"{as_written(facts, found.made)} gets an array of shape {found.shapes.after} that a reshape has made of shape "
        f"{found.shapes.before}, without a transpose before it, and a convolution takes its channels: the reshape "
        "mixes numbers of several channels",
        Label("value_made_here", facts.span_of(found.reshape[1], found.reshape[0]), "reshaped here"),
        facts.label("value_made_here", found.made.site, "a tensor of it", found.made.index),
        facts.label("needed_here", found.layer.site, "the input of this layer", found.layer.index),
    )
