"""Names iterators that a program reads in each round of a loop, although the first round takes all of their items."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.analysis.training.used_up_iterators import used_up_iterators
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.records.report import Label, StandingOut
from tensorlens.records.source import one_line, text_of


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    facts = training.facts
    if not training.measured.passes:
        return
    for each in used_up_iterators(facts):
        source = text_of(facts.trace.sources[each.made.file], each.made)
        text = f"`{each.name}` is an iterator, `{one_line(source, 40)}`, and yields its items once: what reads it here "
        if each.taken is None:
            text += f"runs {each.runs:,} times or more, and finds items only the first time after it is made"
        else:
            text += f"runs {each.runs:,} times or more, and finds none: an optimizer has taken them all"
        yield stands_out(
            text,
            Label("observed_here", each.read, "reads it again and again"),
            Label("value_made_here", each.made, "can be read once"),
            None if each.taken is None else Label("optimizer_made_here", each.taken, "takes all items"),
        )
