"""Finds the cause of `element-does-not-require-grad`."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.lineage import Cut, find_cut
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.diagnostics.shared.graph_cuts import cut_fixes, cut_labels, cut_reason
from tensorlens.diagnostics.shared.wording import finding, fix, named, severity_of, with_method
from tensorlens.records.model import Failure
from tensorlens.records.report import Diagnostic

CODE = "element-does-not-require-grad"


def find(facts: TraceIndex) -> Iterator[Diagnostic]:
    for failure in facts.failures(CODE):
        yield explain(facts, failure)


def explain(facts: TraceIndex, failure: Failure) -> Diagnostic:
    """Reports the root without history, and the line that lost it."""
    root = next((a.tensor for a in failure.inputs if not facts.requires_grad(a.tensor, failure.index)), None)
    cut = None if root is None else find_cut(facts, root, failure.index)
    name = named(facts, root, failure.index)
    labels = [*cut_labels(facts, cut), facts.label("needed_here", failure.site, f"backward starts from {name}")]
    not_a_cure = with_method(name, "requires_grad_()")
    return finding(
        CODE,
        severity_of(failure),
        _title(name, cut),
        "no line was found where its history was lost" if cut is None else cut_reason(facts, cut),
        labels,
        fixes=(
            *cut_fixes(facts, cut),
            fix(f"not a cure: {not_a_cure} only makes it a leaf"),
        ),
        evidence={"root": name, "cut": None if cut is None else cut.call.op},
    )


def _title(name: str, cut: Cut | None) -> str:
    if cut is not None and cut.source is None:
        return f"backward was called on {name}, and nothing that it was computed from requires grad"
    return f"backward was called on {name}, which has no autograd history"
