"""Names recurrent and attention layers that run along the batch: they are made without `batch_first=True`."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.analysis.training.runs_along_batch import runs_along_batch
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.diagnostics.shared.wording import as_written
from tensorlens.records.report import StandingOut


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    facts = training.facts
    if training.training.is_hidden:
        return
    for each in runs_along_batch(facts):
        shape = facts.tensor(each.layer.inputs[0].tensor).shape
        weights = (access.tensor for access in each.layer.inputs[1:] if facts.tensor(access.tensor).type == "Parameter")
        made = next((made for number in weights if (made := facts.creator(number)) is not None), None)
        yield stands_out(
            f"{as_written(facts, each.layer)} runs along the {shape[0]:,} rows of its input, of shape {shape}, as "
            "along time, and the loss has a target for each row: the batch comes first only with `batch_first=True`",
            facts.label("observed_here", each.layer.site, "runs along the first dimension", each.layer.index),
            None if made is None else facts.label("leaf_made_here", made.site, "the layer is made here"),
            facts.label("value_made_here", each.last.site, "one result for each row", each.last.index),
            facts.label("needed_here", each.loss.site, "the loss", each.loss.index),
        )
