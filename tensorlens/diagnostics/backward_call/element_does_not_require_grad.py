"""Finds the cause of `element-does-not-require-grad`."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.lineage import Cut, find_cut
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.diagnostics.shared.cut_facts import result_dtype
from tensorlens.diagnostics.shared.cuts_behind import cut_beside
from tensorlens.diagnostics.shared.graph_cuts import cut_cause, cut_detail, cut_fixes, cut_labels, cut_reason
from tensorlens.diagnostics.shared.wording import finding, named, severity_of, source_text, with_method
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
    beside = None if cut is None or result_dtype(facts, cut) else cut_beside(facts, cut, root)
    labels = [
        *cut_labels(facts, cut, root),
        None if beside is None else facts.label("graph_cut_here", beside.call.site, "cuts another way"),
        facts.label("needed_here", failure.site, f"backward starts from {name}"),
    ]
    return finding(
        CODE,
        severity_of(failure),
        _title(facts, failure, name, cut),
        "no line was found where its history was lost" if cut is None else cut_reason(facts, cut),
        labels,
        fixes=tuple(cut_fixes(facts, cut, root)),
        notes=(f"{with_method(name, 'requires_grad_()')} is no cure: it leads to no parameter",),
        evidence={"root": name, "cut": None if cut is None else cut.call.op},
        detail=cut_detail(facts, cut),
    )


def _title(facts: TraceIndex, failure: Failure, name: str, cut: Cut | None) -> str:
    text = source_text(facts, failure.site)
    call = f"`{text}`" if text.endswith(".backward()") else f"backward from {name}"
    if cut is None:
        return f"{call} finds nothing to differentiate: {name} has no history"
    return f"{call} finds nothing to differentiate: {cut_cause(facts, cut)}"
