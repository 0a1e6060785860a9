"""Names parameters that got gradients, and that no optimizer holds."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.training.measured import MeasuredTraining, ParameterRow
from tensorlens.diagnostics.shared.standing_out_text import listed, stands_out
from tensorlens.records.model import Call
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
    """Returns whether a step follows a gradient of a parameter that nothing changes."""
    if row.group is not None or not row.requires_grad or not row.passes or training.writes(row.tensor):
        return False
    filled = training.training.first_fill(row.tensor)
    is_early = filled is not None and any(step.index > filled.index for step in training.training.steps)
    return is_early and (training.facts.tensor(row.tensor).type.endswith("Parameter") or _is_lasting(training, row))


def _is_lasting(training: MeasuredTraining, row: ParameterRow) -> bool:
    """Returns whether a plain tensor gets a gradient in several passes, and the script does not look at it.

    Data that requires grad, as that of a gradient penalty, is usually new in each pass.
    """
    asked = {number for backward in training.facts.backwards for number in backward.inputs}
    looked_at = row.tensor in asked or row.tensor in training.training.gradient_read
    is_named_once = sum(other.name == row.name for other in training.rows) == 1
    return not looked_at and is_named_once and row.statistics is not None and row.statistics.filled > 1


def _made_before(training: MeasuredTraining, row: ParameterRow) -> Call | None:
    """Returns the call that made the last optimizer, if it ran before a parameter was made or first used."""
    used = training.facts.first_use(row.tensor)
    made = [call for call in training.facts.calls if call.op.startswith("optim.")]
    return made[-1] if made and used is not None and made[-1].index < used.index else None


def _sentence(training: MeasuredTraining, rows: list[ParameterRow]) -> StandingOut:
    facts = training.facts
    made = facts.first_use(rows[0].tensor)
    label = None if made is None else facts.label("leaf_made_here", made.site, "made here", made.index)
    passes = facts.label("needed_here", rows[0].passes[-1], "backward gives it a gradient")
    verb = "is" if len(rows) == 1 else "are"
    text = f"{listed(rows)} {verb} in no optimizer, but {'gets' if len(rows) == 1 else 'get'} gradients"
    before = _made_before(training, rows[0])
    if before is None:
        return stands_out(text, label, passes)
    optimizer = facts.label("optimizer_made_here", before.site, "the optimizer is made here")
    return stands_out(f"{text}: {'it is' if len(rows) == 1 else 'they are'} made after the optimizer",
                      label, optimizer, passes)  # fmt: skip
