"""Names lines that make tensors on one array again and again, while those that were made before are still in use."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.diagnostics.shared.wording import source_text
from tensorlens.records.report import StandingOut

_MIN_TENSORS = 3


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    """Finds lines with arrays that have three or more live tensors of the time before they got their last values."""
    facts = training.facts
    lines: dict[int, list[int]] = defaultdict(list)
    for each in facts.trace.inspection.given_arrays:
        if each.number == training.measured.number and each.outdated >= _MIN_TENSORS and each.outdated_site is not None:
            line = next((site for site in lines if facts.same_line(site, each.outdated_site)), each.outdated_site)
            lines[line].append(each.outdated)
    for site, counts in lines.items():
        arrays = "an array that gets" if len(counts) == 1 else f"{len(counts):,} arrays that get"
        them = "it" if len(counts) == 1 else "them"
        yield stands_out(
            f"`{source_text(facts, site)}` shares memory with {arrays} other values later: {sum(counts):,} tensors "
            f"that were made on {them} before are alive then, and lose their values",
            facts.label("shared_here", site, "the array and its tensors share their memory"),
        )
