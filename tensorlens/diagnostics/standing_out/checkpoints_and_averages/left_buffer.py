"""Names buffers of an average of a model that stay as they were copied, while those of the trained model change."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.training.checkpoints_and_averages.left_buffers import by_model, left_buffers
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.analysis.training.run_summary import is_complete
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.diagnostics.shared.wording import as_written
from tensorlens.records.report import StandingOut


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    facts = training.facts
    if training.training.is_hidden or facts.trace.inspection.switches:
        return
    for found in by_model(left_buffers(training)):
        first = found[0]
        count = f"does {len(found) - 1} other buffer" if len(found) == 2 else f"do {len(found) - 1} other buffers"
        others = "" if len(found) == 1 else f", and so {count} of such averages"
        is_counted = is_complete(facts.trace)  # a long run leaves calls out
        often, many = (f"{n:,} times" if is_counted else "many times" for n in (first.updates, len(first.changes)))
        yield stands_out(
            f"{as_written(facts, first.update)} moves parameters towards trained ones {often}, but the buffer "
            f"`{first.name}` keeps the values from before{others}: lines have changed `{first.source}` {many} since, "
            f"and nothing writes to `{first.name}`",
            facts.label("modified_here", first.update.site, "moves parameters only", first.update.index),
            facts.label("state_changed_here", first.changes[-1].site, f"`{first.source}` is changed here",
                        first.changes[-1].index),
            facts.label("needed_here", first.used.site, f"`{first.name}` is used here", first.used.index),
        )  # fmt: skip
