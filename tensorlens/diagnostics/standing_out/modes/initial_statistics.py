"""Names batch norm that runs in eval mode with running statistics that nothing has updated."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.records.report import Label, StandingOut
from tensorlens.records.training_values import InitialStatistics


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    """Finds these layers, if lines wrote their parameters, as those of an average.

    Layers that steps train in eval mode can be frozen on purpose.
    """
    facts = training.facts
    if training.training.is_hidden or facts.trace.inspection.switches:
        return
    groups: dict[int | None, list[InitialStatistics]] = defaultdict(list)
    for each in facts.trace.inspection.initial_statistics:
        if each.number == training.measured.number and not _is_stepped(training, each) and _written(training, each):
            groups[each.switched].append(each)
    for found in groups.values():
        first = found[0]
        kinds = " and ".join(f"`{each}`" for each in dict.fromkeys(each.layer for each in found))
        which = f"a {kinds} runs" if len(found) == 1 else f"{len(found)} {kinds} layers run"
        text = f"{which} in eval mode with running means of 0 and variances of 1, their initial values"
        whose = "its" if len(found) == 1 else "their"
        yield stands_out(
            f"{text}, although lines write {whose} weights",
            facts.label("observed_here", first.site, "runs in eval mode"),
            _written(training, first),
            facts.label("mode_entered_here", first.switched, "switched to eval mode here"),
        )


def _is_stepped(training: MeasuredTraining, each: InitialStatistics) -> bool:
    rows = [row for number in each.parameters if (row := training.row(number)) is not None]
    return any(row.is_stepped and row.statistics is not None and row.statistics.filled for row in rows)


def _written(training: MeasuredTraining, each: InitialStatistics) -> Label | None:
    """Returns the last line that writes a parameter of the layer after the first step."""
    steps = training.training.steps
    calls = [call for n in each.parameters for call in training.writes(n, steps[0].index)] if steps else []
    last = max(calls, key=lambda call: call.index, default=None)
    return None if last is None else training.facts.label("modified_here", last.site, "its weights are written here")
