"""Names tensors that `.data = ...` has put into the memory of a parameter: later steps change both."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from tensorlens.analysis.training.measured import MeasuredTraining, ParameterRow
from tensorlens.analysis.training.timeline import DATA_SET
from tensorlens.diagnostics.shared.standing_out_text import listed, stands_out
from tensorlens.diagnostics.shared.wording import as_written
from tensorlens.records.model import Call
from tensorlens.records.observations import Step
from tensorlens.records.report import StandingOut

_MAX_STEPS = 20


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    """Finds assignments after which two parameters are one memory, while an optimizer steps one of them."""
    rows = {row.tensor: row for row in training.rows if row.is_stepped}
    found: dict[int, list[tuple[Call, ParameterRow, Step]]] = defaultdict(list)
    seen: set[int] = set()
    for call in training.facts.calls:
        if call.op == DATA_SET and not call.within and len(call.inputs) == 2 and call.inputs[0].tensor not in seen:
            shared = _shared(training, call, rows)
            if shared is not None:
                seen.add(call.inputs[0].tensor)
                found[call.site].append((call, *shared))
    for group in found.values():
        yield _sentence(training, group)


def _shared(training: MeasuredTraining, call: Call, rows: dict[int, ParameterRow]) -> tuple[ParameterRow, Step] | None:
    """Returns the parameter whose memory a tensor gets, and a later step that finds both in that memory."""
    facts, given = training.facts, call.inputs[0].tensor
    memory = facts.storage_of(given, call.index)
    later = [step for step in facts.trace.inspection.steps if step.index > call.index]
    for step in later[:_MAX_STEPS] if memory is not None else []:
        for number, gradient in zip(step.parameters, step.gradients, strict=True):
            both = {facts.storage_of(number, step.index), facts.storage_of(given, step.index)}
            if number != given and number in rows and gradient is not None and both == {memory}:
                return rows[number], step
    return None


def _sentence(training: MeasuredTraining, group: list[tuple[Call, ParameterRow, Step]]) -> StandingOut:
    facts, (call, _, step) = training.facts, group[0]
    rows = list({row.tensor: row for _, row, _ in group}.values())
    given = [call.inputs[0].tensor for call, _, _ in group]
    names = " and ".join(f"`{facts.name(number)}`" for number in given[:2]) + (" and more" if len(given) > 2 else "")
    verb = "shares" if len(given) == 1 else "share"
    name = step.op.removesuffix(".step")
    text = f"{names} {verb} memory with {listed(rows)} after {as_written(facts, call)}"
    text += f": later steps of `{name}` write to both"
    return stands_out(
        text,
        facts.label("shared_here", call.site, "one memory from here on", call.index),
        facts.label("modified_here", step.site, "writes to both"),
    )
