"""Names custom Functions whose backward writes into the gradient that it is given, where another branch has it, too."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.diagnostics.shared.wording import as_written
from tensorlens.records.callbacks import Run
from tensorlens.records.model import Call
from tensorlens.records.report import StandingOut

_SUMS = frozenset(("add", "radd", "iadd"))  # backward of these gives one tensor to both operands


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    facts = training.facts
    callbacks, reported = facts.trace.callbacks, set[int]()
    runs = [run for run in callbacks.runs if callbacks.registrations[run.registration].kind == "backward"]
    written = {write.tensor: call for call in facts.calls if call.writes for write in call.writes} if runs else {}
    for run in runs:
        number = callbacks.registrations[run.registration].function
        write = next((written[given] for given in run.given if given in written), None)
        shared = None if write is None or number in reported else _shared(facts, run)
        if write is not None and shared is not None:
            reported.add(number)
            name = callbacks.functions[number].name
            yield stands_out(
                f"`{name}` writes into the gradient that it is given, at {as_written(facts, write)}: "
                f"{as_written(facts, shared)} adds its result to another value, whose gradient is the same tensor",
                facts.label("modified_here", write.site, "changes both gradients", write.index),
                facts.label("needed_here", shared.site, "one gradient for both operands", shared.index),
            )


def _shared(facts: TraceIndex, run: Run) -> Call | None:
    """Returns a sum of the result of the Function and another value of its shape that has a graph."""
    applied = None if run.node is None else facts.call_of_node(run.node, run.index)
    made = set() if applied is None else {access.tensor for access in applied.outputs}
    for call in facts.calls if made else ():
        numbers = [access.tensor for access in call.inputs]
        if op_name(call) not in _SUMS or len(set(numbers)) != 2 or not made & set(numbers):
            continue
        same = facts.tensor(numbers[0]).shape == facts.tensor(numbers[1]).shape
        if same and all(facts.requires_grad(number, call.index - 1) for number in numbers):
            return call
    return None
