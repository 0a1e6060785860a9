"""Finds the cause of `checkpoint-no-input-requires-grad`."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.diagnostics.shared.rejected import rejected_calls
from tensorlens.diagnostics.shared.wording import finding, fix, named
from tensorlens.records.report import Diagnostic, Label

CODE = "checkpoint-no-input-requires-grad"
MAX_INPUTS = 3


def find(facts: TraceIndex) -> Iterator[Diagnostic]:
    for rejected in rejected_calls(facts, CODE):
        inputs = _given(facts, rejected.index)
        made = _made(facts, rejected.index, inputs)
        name = named(facts, inputs[0], rejected.index) if len(inputs) == 1 else "any of them"
        here = facts.span(rejected.site)
        yield finding(
            CODE,
            "warning",
            "no input of this checkpoint requires grad, so nothing inside it is recorded",
            "a checkpoint with `use_reentrant=True` records its result only if one of its inputs requires grad",
            [facts.label("called_here", rejected.site, "the checkpoint is called here"), *made],
            fixes=(
                fix("pass `use_reentrant=False`: it records what happens inside, whatever the inputs are", place=here),
                fix(f"or let {name} require grad before the call, with `requires_grad_()`", place=here),
            ),
            evidence={"inputs": len(inputs)},
        )


def _given(facts: TraceIndex, at: int) -> list[int]:
    """Returns the tensors passed to the checkpoint that warned: its call is recorded after the warning."""
    call = next((c for c in facts.calls if c.index > at and c.op == "CheckpointFunction.apply"), None)
    return [] if call is None else list(dict.fromkeys(access.tensor for access in call.inputs))


def _made(facts: TraceIndex, at: int, inputs: list[int]) -> Iterator[Label | None]:
    for number in inputs[:MAX_INPUTS]:
        made = next(iter(facts.producers(number, at)), None) or facts.first_use(number)
        text = f"{named(facts, number, at)} does not require grad"
        yield facts.label("value_made_here", None if made is None else made.site, text)
