"""Names parameters whose gradients consist of zeros in each round, and the operation that makes them so."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.training.measured import MeasuredTraining, ParameterRow
from tensorlens.diagnostics.shared.standing_out_text import listed, stands_out
from tensorlens.diagnostics.shared.wording import as_written, op_text
from tensorlens.records.model import Call
from tensorlens.records.report import StandingOut


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    """Finds these parameters, grouped by the operation."""
    groups: dict[tuple[int, ...], list[ParameterRow]] = {}
    for row in training.rows:
        if row.is_zero and row.requires_grad:
            sites = tuple(dict.fromkeys(call.site for call in _calls(training, row.tensor)))
            groups.setdefault(sites, []).append(row)
    for rows in groups.values():
        yield _sentence(training, rows)


def _calls(training: MeasuredTraining, leaf: int) -> list[Call]:
    """Returns the calls that made the nodes which passed only zeros on to a leaf."""
    facts = training.facts
    zeroed = (each for each in facts.trace.inspection.zeroed if each.tensor == leaf)
    found = (facts.call_of_node(each.sequence, each.index + 1) for each in zeroed)
    return [call for call in found if call is not None]


def _sentence(training: MeasuredTraining, rows: list[ParameterRow]) -> StandingOut:
    facts = training.facts
    calls = _calls(training, rows[0].tensor)
    statistics = rows[0].statistics
    assert statistics is not None
    whose = "the gradient" if len(rows) == 1 else "each gradient"
    text = f"{whose} of {listed(rows)} is exactly zero in every pass"
    if statistics.filled == 1:
        text = f"{whose} of {listed(rows)} is exactly zero in the only pass"
    if not calls:
        made = facts.first_use(rows[0].tensor)
        return stands_out(text, None if made is None else facts.label("leaf_made_here", made.site, "made here"))
    call = calls[0]
    shape = facts.tensor(call.outputs[0].tensor).shape if call.outputs else ()
    text += f": {op_text(call.op)} passes only zeros on"
    if _is_softmax(call) and 1 in shape:
        text += f", over a result of shape {tuple(shape)}"
    others = [facts.label("graph_cut_here", each.site, as_written(facts, each)) for each in calls[1:]]
    return stands_out(text, facts.label("graph_cut_here", call.site, "zeroed here", call.index), *others)


def _is_softmax(call: Call) -> bool:
    return "softmax" in call.op
