"""Names values that evaluations go on using, although steps have changed the parameters that they come from."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.analysis.training.modes.stale_results import StaleResult, stale_results
from tensorlens.diagnostics.shared.standing_out_text import listed, stands_out
from tensorlens.diagnostics.shared.wording import as_written
from tensorlens.records.report import Label, StandingOut


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    """Finds a cache that the first evaluation fills, for example."""
    facts, groups = training.facts, dict[tuple[int, int], list[StaleResult]]()
    if training.training.is_hidden or facts.trace.inspection.switches:
        return
    for each in stale_results(training.training):
        if training.row(each.parameter) is not None:
            groups.setdefault((each.used.site, each.steps), []).append(each)
    for group in groups.values():
        first = group[0]
        rows = [row for each in group if (row := training.row(each.parameter)) is not None]
        yield stands_out(
            f"{as_written(facts, first.used)} uses a value that was computed from {listed(rows)} {first.steps:,} steps "
            "before, without a graph: with one, the same line uses a value that is computed anew",
            facts.label("value_made_here", first.made.site, "computed without a graph", first.made.index),
            _kept(facts, first),
            facts.label("needed_here", first.used.site, "used after the steps", first.used.index),
        )


def _kept(facts: TraceIndex, result: StaleResult) -> Label | None:
    """Returns a label for what is used, if another line has made it than the first that uses the parameters."""
    if result.kept.site == result.made.site:
        return None
    return facts.label("observed_here", result.kept.site, "what is used is made here", result.kept.index)
