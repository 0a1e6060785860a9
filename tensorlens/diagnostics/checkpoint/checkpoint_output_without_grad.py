"""Finds the cause of `checkpoint-output-without-grad`."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.contexts import failed_backward, last_recomputed_checkpoint
from tensorlens.analysis.lineage import find_cut
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.diagnostics.shared.graph_cuts import cut_fixes, cut_labels, cut_reason
from tensorlens.diagnostics.shared.wording import finding, fix, severity_of
from tensorlens.records.model import Failure
from tensorlens.records.report import Diagnostic

CODE = "checkpoint-output-without-grad"


def find(facts: TraceIndex) -> Iterator[Diagnostic]:
    for failure in facts.failures(CODE):
        yield explain(facts, failure)


def explain(facts: TraceIndex, failure: Failure) -> Diagnostic:
    """Reports where the second run of the checkpointed function lost the history of its result."""
    result = _result(facts, failure)
    cut = None if result is None else find_cut(facts, result, failure.index)
    checkpoint = last_recomputed_checkpoint(facts, failure)
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


def _result(facts: TraceIndex, failure: Failure) -> int | None:
    """Finds the tensor that the function computed last."""
    backward = failed_backward(facts, failure)
    start = failure.index if backward is None else backward.started
    inside = [call for call in facts.calls if start <= call.index < failure.index and call.outputs]
    return inside[-1].outputs[0].tensor if inside else None
