"""Names losses whose target has a graph, as that of a value of the next state without `detach()`, and losses whose
target is computed from a copy of the model that stays as it was before the first step.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from tensorlens.analysis.training.measured import MeasuredTraining, ParameterRow
from tensorlens.analysis.training.policies_and_values.later_moves import is_copied_for_a_round, moves_later
from tensorlens.analysis.training.policies_and_values.measured_targets import measured_targets
from tensorlens.analysis.training.policies_and_values.trained_hints import trained_hints
from tensorlens.analysis.training.policies_and_values.trained_targets import (
    FixedTarget,
    fixed_targets,
    trained_targets,
)
from tensorlens.analysis.training.run_summary import is_complete
from tensorlens.analysis.training.trained_teachers import teachers_trained
from tensorlens.diagnostics.shared.standing_out_text import listed, stands_out
from tensorlens.diagnostics.shared.wording import as_written, named
from tensorlens.records.report import StandingOut

_MIN_STEPS = 20
_WORD = re.compile(r"[A-Za-z_]\w*")
_MEANT = re.compile(  # methods that train both sides
    r"residual[-_ ](gradient|minimi)|baird|(bellman|euler)[-_ ]resid|consumption|utility|steady[-_ ]state",
    re.IGNORECASE,
)


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    facts = training.facts
    if training.training.is_hidden:
        return
    for each in trained_targets(training.training):
        rows = [row for row in training.rows if row.tensor in each.parameters]
        span = facts.span(each.error.site)
        is_meant = span is not None and _MEANT.search(facts.trace.sources.get(span.file, ""))
        if rows and not is_meant:
            yield stands_out(
                f"{as_written(facts, each.error)} gives {listed(rows)} gradients through both terms of its difference: "
                f"{named(facts, each.target, each.error.index)}, which is multiplied by a constant, has a graph, too",
                facts.label("graph_built_here", each.made.site, "has a graph", each.made.index),
                facts.label("needed_here", each.error.site, "the loss", each.error.index),
            )
    for teacher in (*teachers_trained(training.training), *measured_targets(training.training)):
        rows = [row for row in training.rows if row.tensor in teacher.parameters]
        if rows:
            yield stands_out(
                f"the target of {as_written(facts, teacher.loss)} has a graph: the loss also trains {listed(rows)}, "
                "which its input is not computed from",
                facts.label("graph_built_here", teacher.made.site, "the target has a graph", teacher.made.index),
                facts.label("needed_here", teacher.loss.site, "the loss", teacher.loss.index),
            )
    yield from _hints(training)
    if is_complete(facts.trace) and not facts.trace.inspection.switches:
        yield from _fixed(training)


def _hints(training: MeasuredTraining) -> Iterator[StandingOut]:
    facts = training.facts
    for each in trained_hints(training.training):
        rows = [row for row in training.rows if row.tensor in each.parameters]
        if rows:
            yield stands_out(
                f"{as_written(facts, each.loss)} also trains {listed(rows)}: "
                f"{named(facts, each.target, each.loss.index)} has a graph, and {as_written(facts, each.constant)} of "
                "the same pass takes what these parameters compute as a constant",
                facts.label("needed_here", each.loss.site, "the loss trains both", each.loss.index),
                facts.label("graph_built_here", each.made.site, "has a graph", each.made.index),
                facts.label("needed_here", each.constant.site, "takes it as a constant", each.constant.index),
            )


def _fixed(training: MeasuredTraining) -> Iterator[StandingOut]:
    facts, steps = training.facts, training.training.steps
    for each in fixed_targets(training.training) if len(steps) >= _MIN_STEPS else ():
        if any(training.writes(number, since=steps[0].index) for number in each.copies):
            continue
        rows = [row for row in training.rows if row.tensor in each.copies]
        originals = [row for row in training.rows if row.tensor in each.originals]
        if (not rows and not originals) or _may_move(training, each, (rows, originals)):
            continue
        shown = listed(rows) if rows else f"copies of {listed(originals)}"
        made = facts.creator(rows[0].tensor if rows else each.copies[0])
        yield stands_out(
            f"the target of {as_written(facts, each.error)} is computed from {shown}, and no line moves them "
            f"after the first of {len(steps):,} steps: they were copied from what the loss trains",
            None if made is None else facts.label("leaf_made_here", made.site, "copied here", made.index),
            facts.label("value_made_here", each.made.site, "the target is computed from it", each.made.index),
            facts.label("needed_here", each.error.site, "the loss", each.error.index),
        )


def _may_move(training: MeasuredTraining, each: FixedTarget, rows: tuple[Sequence[ParameterRow], ...]) -> bool:
    """Returns whether a line that did not run may move the copies, or they are there for one round of several."""
    facts = training.facts
    copies, originals = ({name for row in some for part in row.owner for name in _WORD.findall(part)} for some in rows)
    if moves_later(facts, copies - originals, originals - copies):
        return True
    sites = {call.site for number in each.copies for call in facts.producers(number, facts.events[-1].index + 1)}
    sites |= {made.site for number in each.copies if (made := facts.creator(number)) is not None}
    return any(is_copied_for_a_round(facts, site, original) for site in sites for original in each.originals[:1])
