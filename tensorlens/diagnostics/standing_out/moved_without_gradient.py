"""Names parameters that moved where their gradients were missing or zero, and what moved them."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.training.measured import MeasuredTraining, ParameterRow
from tensorlens.diagnostics.shared.standing_out_text import listed, stands_out
from tensorlens.diagnostics.shared.wording import as_written
from tensorlens.records.model import Call
from tensorlens.records.report import Label, StandingOut


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    """Finds whole parameters that moved without a gradient, and parts whose gradient the script set to zero.

    Weight decay moves every row of an embedding, also those that no batch used: a part alone is nothing unusual.
    """
    whole: dict[tuple[int, int], list[ParameterRow]] = {}
    for row in training.rows:
        movement, group = row.movement, row.group
        if movement is None or group is None or not row.is_stepped or not movement.unreached_moved:
            continue
        if movement.unreached == movement.elements:
            whole.setdefault((group.optimizer, group.group), []).append(row)
        elif touched := _touches(training, row):
            yield _part(training, row, touched)
    for rows in whole.values():
        yield _whole(training, rows)


def _touches(training: MeasuredTraining, row: ParameterRow) -> list[Call]:
    """Returns the calls with which the script changed the gradient of a parameter between a pass and a step."""
    moments = training.training.moments.get(row.tensor, ())
    return [m.event for m in moments if m.kind == "touch" and isinstance(m.event, Call) and not m.event.within]


def _cause(training: MeasuredTraining, row: ParameterRow) -> tuple[str, Label | None]:
    """Says what can have moved a parameter without a gradient, with its line."""
    facts, group = training.facts, row.group
    assert group is not None
    writes = training.writes(row.tensor)
    made = facts.label("optimizer_made_here", group.site, f"`{group.name}` is made here")
    decays = bool(group.weight_decay) and row.statistics is not None and row.statistics.filled > 0
    if decays and not writes:
        return f"by weight decay ({group.weight_decay:g})", made
    if writes and not decays:
        return f"by {as_written(facts, writes[0])}", facts.label("modified_here", writes[0].site, "changed here")
    if writes:
        return f"by weight decay ({group.weight_decay:g}) and writes", made
    moments = training.training.moments.get(row.tensor, ())
    steps = any(isinstance(m.event, Call) and m.event.within and m.kind == "update" for m in moments)
    return (f"by `{group.name}` itself" if steps else "in a way that is not recorded"), made


def _whole(training: MeasuredTraining, rows: list[ParameterRow]) -> StandingOut:
    cause, label = _cause(training, rows[0])
    filled = any(row.statistics is not None and row.statistics.filled for row in rows)
    what = "only gradients of zeros" if filled else "no gradient"
    verb = "is" if len(rows) == 1 else "are"
    return stands_out(f"{listed(rows)} had {what} at any step, and {verb} moved {cause}", label)


def _part(training: MeasuredTraining, row: ParameterRow, touched: list[Call]) -> StandingOut:
    cause, label = _cause(training, row)
    movement = row.movement
    assert movement is not None
    count = f"{movement.unreached_moved:,} of {movement.elements:,} elements"
    text = f"{count} of `{row.name}` had gradients of zeros at each step, and are moved {cause}"
    changed = training.facts.label("modified_here", touched[-1].site, "the gradient is changed here")
    return stands_out(text, label, changed)
