"""Names parameters that losses do not reach any more, because they use a value that was computed without a graph."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.training.cut_graphs.cached_constants import CachedConstant, cached_constants
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.diagnostics.shared.standing_out_text import listed, stands_out
from tensorlens.diagnostics.shared.wording import as_written
from tensorlens.records.report import StandingOut


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    """Finds a cache that an evaluation fills, for example."""
    facts, groups = training.facts, dict[tuple[int, int], list[CachedConstant]]()
    for each in cached_constants(training):
        groups.setdefault((each.used.site, each.missed), []).append(each)
    for group in groups.values():
        first = group[0]
        rows = [row for each in group if (row := training.row(each.parameter)) is not None]
        one = len(rows) == 1
        when = f"in the last {first.missed:,} passes, after {first.reached:,} that gave {'it' if one else 'each'} one"
        if not first.reached:
            when = f"in any of {first.missed:,} passes"
        yield stands_out(
            f"{listed(rows)} {'gets' if one else 'get'} no gradient {when}: {as_written(facts, first.used)} uses a "
            f"value that {as_written(facts, first.made)} computed while gradients were off",
            facts.label("grad_mode_off_here", first.made.site, "computed without a graph", first.made.index),
            facts.label("needed_here", first.used.site, "a constant here", first.used.index),
            facts.label("value_made_here", first.kept, "kept here"),
            facts.label("observed_here", first.backward.site, "does not get there"),
        )
