"""Names parameters that no step trains, and to which a line adds what others give, again and again."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from tensorlens.analysis.training.measured import MeasuredTraining, ParameterRow
from tensorlens.analysis.training.parameters.folded_updates import FoldedUpdate, folded_updates
from tensorlens.diagnostics.shared.standing_out_text import listed, stands_out
from tensorlens.diagnostics.shared.wording import as_written
from tensorlens.records.report import StandingOut


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    found: dict[tuple[int, ...], list[FoldedUpdate]] = defaultdict(list)
    for each in folded_updates(training):
        load = [] if each.loaded is None else [each.loaded.load.site]
        found[each.adding[0].site, *{call.site for call in each.taking}, *load].append(each)
    for updates in found.values():
        yield _again(training, updates) if updates[0].loaded is None else _loaded(training, updates)


def _again(training: MeasuredTraining, found: list[FoldedUpdate]) -> StandingOut:
    facts, first = training.facts, found[0]
    rows, others = _rows(training, found)
    taking = first.taking[0] if first.taking else None
    ends = "and no line takes it out again"
    if taking is not None:
        ends = f"{first.again:,} of these right after another one, and {as_written(facts, taking)} takes it out only "
        ends += f"{len(first.taking):,} times"
    often = f"{len(first.adding):,} times, each time by a value of {listed(others)}, {ends}: the changes add up"
    return stands_out(
        f"{as_written(facts, first.adding[0])} changes {listed(rows)} {often}",
        facts.label("modified_here", first.adding[0].site, "added here", first.adding[0].index),
        None if taking is None else facts.label("modified_here", taking.site, "taken out here", taking.index),
    )


def _loaded(training: MeasuredTraining, found: list[FoldedUpdate]) -> StandingOut:
    facts, first, loaded = training.facts, found[0], found[0].loaded
    assert loaded is not None
    rows, others = _rows(training, found)
    adding, taking = first.adding[0], first.taking[0]
    return stands_out(
        f"{as_written(facts, adding)} adds a value of {listed(others)} to {listed(rows)} a second time: "
        f"{as_written(facts, loaded.load)} has loaded values that were kept with one in them, after "
        f"{as_written(facts, taking)} took it out",
        facts.label("modified_here", loaded.load.site, "loaded here", loaded.load.index),
        facts.label("value_made_here", loaded.kept.site, "kept with the value in it", loaded.kept.index),
        facts.label("modified_here", adding.site, "added here", adding.index),
        facts.label("modified_here", taking.site, "taken out here", taking.index),
    )


def _rows(training: MeasuredTraining, found: list[FoldedUpdate]) -> tuple[list[ParameterRow], list[ParameterRow]]:
    """Returns the rows of the parameters that a line adds to, and of those that it adds."""
    return [each.row for each in found], [row for row in training.rows if row.tensor in found[0].added]
