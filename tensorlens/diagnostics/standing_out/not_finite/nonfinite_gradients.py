"""Names parameters whose gradient is infinite or NaN at a step, and the first such step."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.training.measured import MeasuredTraining, ParameterRow
from tensorlens.diagnostics.shared.standing_out_text import listed, stands_out
from tensorlens.diagnostics.shared.wording import ordinal
from tensorlens.records.report import StandingOut


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    """Finds these parameters, one sentence for those with the same steps."""
    groups: dict[tuple[int, int, int], list[ParameterRow]] = {}
    for row in training.rows:
        found = row.statistics
        if found is not None and found.nonfinite and row.is_stepped:
            groups.setdefault((found.first_nonfinite, found.nonfinite, found.rounds), []).append(row)
    for (first, count, rounds), rows in groups.items():
        whose = "the gradient" if len(rows) == 1 else "each gradient"
        when = "at the only step" if rounds == 1 else f"at {count} of {rounds} steps, first at the {ordinal(first)}"
        site = rows[0].passes[0] if rows[0].passes else None
        label = training.facts.label("needed_here", site, "backward computes it")
        yield stands_out(f"{whose} of {listed(rows)} has infinite or NaN values {when}", label)
