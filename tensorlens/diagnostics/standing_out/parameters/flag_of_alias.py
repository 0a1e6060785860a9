"""Names lines that set `requires_grad` of an alias, as `p.data.requires_grad = False`: the parameter keeps its flag."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.training.measured import MeasuredTraining, ParameterRow
from tensorlens.analysis.training.timeline import FLAG_SETS
from tensorlens.diagnostics.shared.standing_out_text import listed, stands_out
from tensorlens.diagnostics.shared.wording import as_written
from tensorlens.records.model import Call
from tensorlens.records.report import StandingOut

_ALIASES = ("Tensor.data.__get__", "Tensor.detach", "torch.detach")


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    """Finds these lines if nothing uses the alias later, and the parameter trains, or stays frozen, all the same."""
    facts = training.facts
    last_use = {access.tensor: call.index for call in facts.calls for access in call.inputs}
    groups: dict[tuple[int, bool], list[tuple[Call, ParameterRow]]] = {}
    for call in facts.calls:
        if call.op not in FLAG_SETS or call.within or not call.inputs or last_use[call.inputs[0].tensor] > call.index:
            continue
        made = facts.creator(call.inputs[0].tensor)
        row = training.row(made.inputs[0].tensor) if made is not None and made.op in _ALIASES and made.inputs else None
        wanted = facts.requires_grad(call.inputs[0].tensor, call.index)
        if row is not None and row.requires_grad != wanted and _matters(training, row, call):
            groups.setdefault((call.site, wanted), []).append((call, row))
    for (_, wanted), found in groups.items():
        yield _sentence(training, [row for _, row in found], found[0][0], wanted)


def _matters(training: MeasuredTraining, row: ParameterRow, call: Call) -> bool:
    """Returns whether steps use the gradients of a parameter after the call, or whether it has no gradient at all."""
    if not row.requires_grad:
        return not row.passes
    filled = training.training.last_fill(row.tensor)
    used = row.statistics is not None and row.statistics.filled > row.statistics.zero
    return filled is not None and filled.index > call.index and row.is_stepped and used


def _sentence(training: MeasuredTraining, rows: list[ParameterRow], call: Call, wanted: bool) -> StandingOut:
    one = len(rows) == 1
    if wanted:
        what = f"{'does' if one else 'do'} not require grad, and {'gets' if one else 'get'} no gradient"
    else:
        what = f"{'requires' if one else 'require'} grad, and steps use the {'gradient' if one else 'gradients'}"
    text = f"{as_written(training.facts, call)} sets the flag of an alias: {listed(rows)} still {what}"
    return stands_out(text, training.facts.label("flag_changed_here", call.site, "the flag of an alias", call.index))
