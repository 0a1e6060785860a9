"""Names lines that make tensors on one array again and again, while those that were made before are still in use."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.diagnostics.shared.wording import source_text
from tensorlens.records.report import StandingOut

_MIN_TENSORS = 3


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    """Finds arrays with three or more live tensors that were made before the array got its last values."""
    facts = training.facts
    for each in facts.trace.inspection.given_arrays:
        if each.number == training.measured.number and each.outdated >= _MIN_TENSORS and each.outdated_site is not None:
            yield stands_out(
                f"`{source_text(facts, each.outdated_site)}` shares memory with an array that gets other values later: "
                f"{each.outdated} tensors that were made on it before are alive then, and lose their values",
                facts.label("shared_here", each.outdated_site, "the array and its tensors share their memory"),
            )
