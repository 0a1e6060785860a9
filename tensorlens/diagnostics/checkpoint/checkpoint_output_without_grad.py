"""Finds the cause of `checkpoint-output-without-grad`."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.contexts import failed_backward, last_recomputed_checkpoint
from tensorlens.analysis.lineage import find_cut
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.diagnostics.shared.graph_cuts import cut_fixes, cut_labels, cut_reason
from tensorlens.diagnostics.shared.wording import finding, fix, severity_of
from tensorlens.records.model import Call, Failure, Region
from tensorlens.records.report import Diagnostic

CODE = "checkpoint-output-without-grad"


def find(facts: TraceIndex) -> Iterator[Diagnostic]:
    for failure in facts.failures(CODE):
        yield explain(facts, failure)


def explain(facts: TraceIndex, failure: Failure) -> Diagnostic:
    """Reports where the second run of the checkpointed function lost the history of its result."""
    checkpoint = last_recomputed_checkpoint(facts, failure)
    result = _result(facts, failure, checkpoint)
    cut = None if result is None else find_cut(facts, result, failure.index)
    labels = [label for label in cut_labels(facts, cut) if label is not None and label.role != "leaf_made_here"]
    if checkpoint is not None:
        text = "one of its inputs requires grad"
        labels += filter(None, [facts.label("called_here", checkpoint.site, text)])
    return finding(
        CODE,
        severity_of(failure),
        "the function of this checkpoint returns nothing that requires grad",
        "no line was found where its history was lost" if cut is None else cut_reason(facts, cut),
        [*labels, facts.label("needed_here", failure.site, "runs the function again, and records it")],
        fixes=(
            *cut_fixes(facts, cut),
            fix(
                "or call the function without a checkpoint: nothing of it is kept for backward",
                place=None if checkpoint is None else facts.span(checkpoint.site),
            ),
        ),
        evidence={"cut": None if cut is None else cut.call.op},
    )


def _result(facts: TraceIndex, failure: Failure, checkpoint: Region | None) -> int | None:
    """Finds what the second run of the function returned: it was made on the line that made the first run's result."""
    first = None if checkpoint is None else _first_result(facts, checkpoint)
    made = None if first is None else facts.creator(first)
    backward = failed_backward(facts, failure)
    start = failure.index if backward is None else backward.started
    inside = [call for call in facts.calls if start <= call.index < failure.index and call.outputs]
    same = [call for call in inside if made is not None and (call.site, call.op) == (made.site, made.op)]
    return same[-1].outputs[0].tensor if same else None


def _first_result(facts: TraceIndex, checkpoint: Region) -> int | None:
    """Finds the result of the checkpoint that was entered at an event."""
    depth = 0
    for event in facts.events[facts.trace.position(checkpoint.index) :]:
        if isinstance(event, Region) and event.name == "checkpoint":
            depth += 1 if event.entering else -1
        elif depth == 0 and isinstance(event, Call):
            is_result = event.op == "CheckpointFunction.apply" and event.outputs
            return event.outputs[0].tensor if is_result else None
    return None
