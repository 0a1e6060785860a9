"""Names parameters that got gradients, and that no optimizer holds."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.training.measured import MeasuredTraining, ParameterRow
from tensorlens.diagnostics.shared.standing_out_text import listed, stands_out
from tensorlens.records.report import StandingOut


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    """Finds parameters with gradients that neither a step nor a write of the script changed."""
    if not training.measured.steps:
        return
    for module in training.modules:
        rows = [row for row in module.rows if _is_left_out(training, row)]
        if rows:
            yield _sentence(training, rows)


def _is_left_out(training: MeasuredTraining, row: ParameterRow) -> bool:
    return row.group is None and row.requires_grad and bool(row.passes) and not training.writes(row.tensor)


def _sentence(training: MeasuredTraining, rows: list[ParameterRow]) -> StandingOut:
    facts = training.facts
    made = facts.first_use(rows[0].tensor)
    label = None if made is None else facts.label("leaf_made_here", made.site, "made here", made.index)
    passes = facts.label("needed_here", rows[0].passes[-1], "backward gives it a gradient")
    verb = "is" if len(rows) == 1 else "are"
    return stands_out(f"{listed(rows)} {verb} in no optimizer, but {'gets' if len(rows) == 1 else 'get'} gradients",
                      label, passes)  # fmt: skip
