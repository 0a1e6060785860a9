"""Names gradients of the last passes of a round that the first step of the next round uses as well.

A loop over batches steps after each fourth one. If their number is no multiple of four, the last ones of an epoch wait
for a step, and the first step of the next epoch uses more passes than the divisor of each loss.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from tensorlens.analysis.code_around import function_around
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.gradients.accumulation import Accumulation, accumulations
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.records.report import Label, StandingOut

_TOLERANCE = 1e-3
_MIN_STEPS = 3


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    """Finds steps with more passes than others of the same line, where each loss is divided by the smaller count."""
    if training.training.is_hidden:
        return
    by_site: dict[int, list[Accumulation]] = {}
    for found in accumulations(training.training):
        by_site.setdefault(found.passes[0].site, []).append(found)
    for group in by_site.values():
        counts = [len(each.passes) for each in group]
        usual, longer = min(counts), [each for each in group if len(each.passes) > min(counts)]
        condition = _condition(training.facts, group[0]) if longer and _is_left_over(group, usual) else None
        if condition is None:
            continue
        count, facts = len(longer[0].passes), training.facts
        rest = "pass of a round is" if count - usual == 1 else f"{count - usual} passes of a round are"
        steps = "1 step of the line uses" if len(longer) == 1 else f"{len(longer)} steps of the line use"
        others = "1 other" if len(group) - len(longer) == 1 else f"{len(group) - len(longer)} others"
        yield stands_out(
            f"{steps} the sum of {count} backward passes, and {others} that of {usual}, although each "
            f"loss is divided by {usual}: the last {rest} left to the next round",
            condition,
            facts.label("needed_here", longer[0].step.site, "the step"),
            facts.label("accumulated_here", longer[0].passes[0].site, "the gradients add up"),
        )


def _is_left_over(group: Sequence[Accumulation], usual: int) -> bool:
    """Returns whether each step uses `usual` passes, each divided by this number, and each longer one has the same
    number more, as many as a round of the loop can leave.

    It is the first step of each round but the first one: where it is the last one, the program may take the rest of a
    round together with the group before.
    """
    counts = [len(each.passes) for each in group]
    more = {count for count in counts if count != usual}
    is_divided = all(abs(loss.factor * usual - 1) < _TOLERANCE for each in group for loss in each.losses)
    if len(more) != 1 or max(more) >= 2 * usual or counts[0] != usual or not is_divided:
        return False
    places = [place for place, count in enumerate(counts) if count != usual]
    gaps = {after - before for before, after in zip([0, *places], places, strict=False)}
    return len(gaps) == 1 and len(counts) % min(gaps) == 0 and len(counts) >= _MIN_STEPS


def _condition(facts: TraceIndex, found: Accumulation) -> Label | None:
    """Labels the condition that decides when to step, also in a function that calls the one with the step."""
    for site in facts.call_chain(found.step.site) if found.step.site is not None else ():
        span = facts.span(site)
        if span is None:
            continue
        function = function_around(facts, span.file, span.line)
        scope = function if function is not None else facts.tree(span.file)
        choices = [node for node in ast.walk(scope) if isinstance(node, ast.If)]
        around = [each for each in choices if each.lineno <= span.line <= (each.end_lineno or each.lineno)]
        if around:
            last = max(around, key=lambda each: each.lineno)
            return Label("observed_here", facts.span_of(last.test, span.file), "decides when to step")
    return None
