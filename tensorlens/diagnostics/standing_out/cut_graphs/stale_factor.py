"""Names values of trained parameters that a line computes before their steps, and that losses use after these."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.training.cut_graphs.stale_factors import stale_factors
from tensorlens.analysis.training.cut_graphs.stale_graphs import StaleGraph, stale_graphs
from tensorlens.analysis.training.measured import MeasuredTraining, ParameterRow
from tensorlens.diagnostics.shared.standing_out_text import listed, stands_out
from tensorlens.diagnostics.shared.wording import as_written
from tensorlens.records.report import StandingOut


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    facts = training.facts
    if training.training.is_hidden:
        return
    for each in stale_factors(training.training):
        row = training.row(each.parameter)
        if row is None or not row.is_stepped:
            continue
        yield stands_out(
            f"{as_written(facts, each.made)} computes a value of {listed([row])} once, before its first step, and "
            f"{as_written(facts, each.used)} uses this value after {each.steps:,} steps of it",
            facts.label("value_made_here", each.made.site, "computed once", each.made.index),
            facts.label("needed_here", each.used.site, "used after the steps", each.used.index),
        )
    for kept in stale_graphs(training.training):
        yield from _with_graph(training, kept)


def _with_graph(training: MeasuredTraining, stale: StaleGraph) -> Iterator[StandingOut]:
    """Yields the sentence about a value with a graph, if the steps have changed the parameters by their gradients."""
    facts = training.facts
    rows = [row for number in stale.parameters if (row := training.row(number)) is not None]
    rows = [row for row in rows if _is_moved(row)]
    if not rows:
        return
    its, it = ("its", "it") if len(rows) == 1 else ("their", "them")
    yield stands_out(
        f"{as_written(facts, stale.made)} computes a value of {listed(rows)} {'once, ' if stale.is_once else ''}before "
        f"{its} first step, and {as_written(facts, stale.used)} uses this value after {stale.steps:,} steps of {it}",
        facts.label("value_made_here", stale.made.site, "computed before the steps", stale.made.index),
        facts.label("observed_here", stale.kept, "kept here"),
        facts.label("needed_here", stale.used.site, "used after the steps", stale.used.index),
    )


def _is_moved(row: ParameterRow) -> bool:
    """Returns whether steps have moved a parameter by its gradients; of one that is gone, whether they had a rate."""
    has_rate = row.group is not None and row.group.rates[1] > 0
    return row.is_stepped and not row.is_zero and (row.has_moved if row.movement is not None else has_rate)
