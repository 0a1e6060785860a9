"""Finds the calls of custom Functions, and what their `backward` returned."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.facts import TraceIndex
from tensorlens.records.callbacks import Run
from tensorlens.records.model import Call


def backward_runs(facts: TraceIndex) -> Iterator[tuple[Run, Call]]:
    """Finds each run of a custom Function's `backward` that returned, with the call that made its node."""
    callbacks = facts.trace.callbacks
    for run in callbacks.runs:
        kind = callbacks.registrations[run.registration].kind
        if kind not in ("backward", "vjp") or run.ended != "returned" or run.node is None:
            continue
        call = facts.call_of_node(run.node, run.index)
        if call is not None and call.op.endswith(".apply"):
            yield run, call


def inputs_needing_gradient(facts: TraceIndex, call: Call) -> list[int]:
    """Finds the tensors among a call's inputs that require grad and that autograd knows as its inputs."""
    nested = {n for note in facts.trace.inspection.nested if note.index == call.index + 1 for n in note.tensors}
    found = [access.tensor for access in call.inputs if facts.requires_grad(access.tensor, call.index - 1)]
    return [number for number in dict.fromkeys(found) if number not in nested]


def gradient_of(facts: TraceIndex, number: int, at: int) -> str | None:
    """Returns the text of a leaf's gradient after the backward pass around event `at`."""
    for backward in facts.backwards:
        if backward.started <= at <= backward.index:
            return next((g.after for g in backward.gradients if g.tensor == number), None)
    return None
