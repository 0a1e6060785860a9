"""Finds the cause of `gradient-differs-from-reference`."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.diagnostics.shared.proof import difference_text, proof_notes
from tensorlens.diagnostics.shared.wording import finding, fix, named
from tensorlens.records.model import Backward
from tensorlens.records.reference import Reference
from tensorlens.records.report import Diagnostic, Label

CODE = "gradient-differs-from-reference"


def find_unreported(facts: TraceIndex) -> Iterator[Diagnostic]:
    """Reports the wrong gradients of a run that no other finding explains."""
    reference = facts.trace.reference
    if reference is None or not reference.differences:
        return
    backward = facts.event(reference.differences[0].backward)
    if isinstance(backward, Backward):
        yield _report(facts, reference, backward)


def _report(facts: TraceIndex, reference: Reference, backward: Backward) -> Diagnostic:
    worst = max(reference.differences, key=lambda difference: difference.relative)
    return finding(
        CODE,
        "warning",
        difference_text(facts, worst),
        "a second run in which autograd kept copies of what it saves has a different gradient: something that this "
        "pass needed was changed after it was saved, and no version moved",
        [
            facts.label("needed_here", backward.site, "backward computes with changed values"),
            *_leaves(facts, reference),
        ],
        notes=proof_notes(facts, backward) if len(reference.differences) > 1 else (),
        fixes=(fix("look for what writes to the memory of a tensor between the forward pass and this line"),),
        evidence={"largest": worst.largest, "relative": worst.relative, "tensors": len(reference.differences)},
    )


def _leaves(facts: TraceIndex, reference: Reference) -> Iterator[Label | None]:
    for difference in reference.differences[:3]:
        made = facts.first_use(difference.tensor)
        name = named(facts, difference.tensor, difference.backward)
        yield facts.label("leaf_made_here", None if made is None else made.site, f"{name} gets a wrong gradient")
