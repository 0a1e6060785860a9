"""Names attributes of modules that have been overwritten for other data before they are used."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.caller_lines import caller_lines
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.changed_in_place.crossed_attributes import CrossedAttribute, crossed_attributes
from tensorlens.analysis.training.changed_in_place.crossed_evaluations import crossed_evaluations
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.diagnostics.shared.wording import as_written, named
from tensorlens.records.report import Label, StandingOut


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    facts, functions = training.facts, dict[tuple[object, ...], CrossedAttribute]()
    for each in sorted((*crossed_attributes(facts), *crossed_evaluations(facts)), key=lambda each: each.used.index):
        functions.setdefault((*facts.scope(each.used.site), *facts.scope(each.last.site)), each)
    for each in functions.values():
        used, last = each.used, each.last
        yield stands_out(
            f"{as_written(facts, used)} uses a `{each.name}` of other data: {named(facts, each.other, used.index)} is "
            f"computed with the value that {as_written(facts, last)} set before, and the line has set another since",
            facts.label("needed_here", used.site, "used here", used.index),
            facts.label("replaced_here", last.site, "set here, and set again", last.index),
            _again(facts, each),
        )


def _again(facts: TraceIndex, each: CrossedAttribute) -> Label | None:
    """Returns the line that led to the second setting, or the switch around it alone, if one of them is known."""
    span = caller_lines(facts.trace).line(each.last)
    if span is not None:
        return Label("called_here", span, "set again during this call")
    switch = facts.mode_switch(each.last.index) if each.first.mode == "grad" != each.last.mode else None
    return None if switch is None else facts.label("grad_mode_off_here", switch.site, "set again after this")
