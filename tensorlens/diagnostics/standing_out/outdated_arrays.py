"""Names lines that make tensors on one array again and again, while those that were made before are still in use."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.diagnostics.shared.wording import as_written
from tensorlens.records.report import StandingOut

_MIN_TENSORS = 3


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    """Finds arrays with three or more live tensors that were made before the array got its last values."""
    facts = training.facts
    for each in facts.trace.inspection.given_arrays:
        made = facts.creator(each.tensor)
        if each.number == training.measured.number and each.outdated >= _MIN_TENSORS and made is not None:
            yield stands_out(
                f"{as_written(facts, made)} shares memory with an array that gets other values later: {each.outdated} "
                "tensors that were made on it before are alive then, and lose their values",
                facts.label("shared_here", each.site, "the array and its tensors share their memory", made.index),
            )
