"""Finds the cause of `grad-fn-is-none`."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.lineage import find_cut
from tensorlens.analysis.missing_gradient import GRAD_FN_READ, last_read_of_none
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.diagnostics.shared.graph_cuts import cut_cause, cut_fixes, cut_labels, cut_reason
from tensorlens.diagnostics.shared.wording import finding, fix, named, severity_of, with_method
from tensorlens.records.report import Diagnostic

CODE = "grad-fn-is-none"


def find(facts: TraceIndex) -> Iterator[Diagnostic]:
    for failure in facts.failures(CODE):
        read = last_read_of_none(facts, failure, GRAD_FN_READ)
        state = None if read is None else facts.state(read.inputs[0].tensor, read.index)
        if read is None or state is None or state.grad_fn is not None:
            continue
        name = named(facts, state.tensor, read.index)
        cut = None if state.requires_grad else find_cut(facts, state.tensor, read.index)
        made = facts.first_use(state.tensor)
        cause = f"{name} is a leaf" if cut is None else cut_cause(facts, cut)
        why = (
            "`grad_fn` is the operation that made a tensor: a leaf has none" if cut is None else cut_reason(facts, cut)
        )
        labels = [
            facts.label("needed_here", failure.site, "`grad_fn` is None here"),
            *cut_labels(facts, cut),
            None if cut or made is None else facts.label("leaf_made_here", made.site, f"{name} is made here"),
        ]
        yield finding(
            CODE,
            severity_of(failure),
            f"{with_method(name, 'grad_fn')} is None: {cause}",
            why,
            [label for label in labels if label is None or cut is None or label.role != "leaf_made_here"],
            fixes=tuple(cut_fixes(facts, cut))
            or (fix(f"stop where {with_method(name, 'grad_fn')} is None", place=facts.span(failure.site)),),
            evidence={"tensor": name},
        )
