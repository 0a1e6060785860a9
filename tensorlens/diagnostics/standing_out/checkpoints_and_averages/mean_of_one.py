"""Names a mean of several models that takes one trained parameter several times, as of clients that are one model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.analysis.training.one_memory import origin
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.diagnostics.shared.wording import as_written
from tensorlens.records.model import Call
from tensorlens.records.report import StandingOut

_MEANS = frozenset(("mean", "sum"))
_MIN_CALLS = 2


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    """Finds it if a line only ever stacks one parameter, and the mean of it is written to another tensor, or to it."""
    facts, found = training.facts, dict[int, list[Call]]()
    rows = {origin(facts, row.tensor) for row in training.rows if row.is_stepped}
    written = {access.tensor for call in facts.calls if op_name(call) == "copy" for access in call.inputs[1:]}
    means = [call for call in facts.calls if op_name(call) in _MEANS and call.outputs]
    taken = {call.inputs[0].tensor for call in means if call.inputs and call.outputs[0].tensor in written}
    for call in facts.calls:
        numbers = {origin(facts, access.tensor) for access in call.inputs} if op_name(call) == "stack" else set[int]()
        is_mean = bool(call.outputs) and call.outputs[0].tensor in taken
        if is_mean and len(call.inputs) > 1 and len(numbers) == 1 and numbers <= rows:
            found.setdefault(call.site, []).append(call)
    runs = Counter(call.site for call in facts.calls if op_name(call) == "stack")
    for site, calls in found.items():
        first = calls[0]
        if _MIN_CALLS <= len(calls) == runs[site]:
            yield stands_out(
                f"{as_written(facts, first)} stacks one and the same parameter {len(first.inputs)} times: a mean of "
                "these is the parameter itself, so that the models are one model",
                facts.label("value_made_here", first.site, "stacked here", first.index),
                *(
                    facts.label("optimizer_made_here", group.site, "its steps move them all")
                    for group in training.groups[:1]
                ),
            )
