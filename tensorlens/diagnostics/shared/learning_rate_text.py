"""Names groups of optimizers, and finds the lines that set learning rates, for the sentences about these."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.analysis.training.written_rates import is_from_groups, written_rates
from tensorlens.diagnostics.shared.standing_out_text import listed
from tensorlens.records.model import Span
from tensorlens.records.training import OptimizerGroup


def group_name(training: MeasuredTraining, group: OptimizerGroup) -> str:
    """Names an optimizer, or the parameters of a group if it has several."""
    if sum(each.optimizer == group.optimizer for each in training.groups) == 1:
        return f"`{group.name}`"
    rows = [row for number in group.parameters if (row := training.row(number)) is not None]
    return f"the group of {listed(rows)}" if rows else f"a group of `{group.name}`"


def lines_that_set_rates(facts: TraceIndex, of_groups: bool = False) -> Iterator[Span]:
    """Yields where the program sets an item "lr", as in `group["lr"] = 0.1` or `group.update(lr=0.1)`; `of_groups`:
    only if the source says that it is the item of a group."""
    for each in written_rates(facts):
        if not of_groups or is_from_groups(facts, each.file, each.group):
            yield each.span
