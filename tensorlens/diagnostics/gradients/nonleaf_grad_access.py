"""Finds the cause of `nonleaf-grad-access`."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.diagnostics.gradients._nonleaf import nonleaf_fixes, nonleaf_reason
from tensorlens.diagnostics.shared.rejected import labels_of, rejected_calls
from tensorlens.diagnostics.shared.rejected_call import RejectedCall
from tensorlens.diagnostics.shared.wording import finding, with_method
from tensorlens.records.error_messages import entry
from tensorlens.records.report import Diagnostic

_CODE = "nonleaf-grad-access"


def find(facts: TraceIndex) -> Iterator[Diagnostic]:
    for rejected in rejected_calls(facts, _CODE):
        if rejected.stands_alone():
            yield _report(rejected)


def _report(rejected: RejectedCall) -> Diagnostic:
    facts, known = rejected.facts, entry(_CODE)
    assert known is not None
    number = rejected.first(rejected.is_nonleaf)
    name = rejected.name(number)
    return finding(
        _CODE,
        rejected.severity,
        f"{with_method(name, 'grad')} was read, and {name} is computed, not a leaf",
        nonleaf_reason(facts, number, rejected.index),
        labels_of(rejected, known.roles)[0],
        fixes=tuple(nonleaf_fixes(facts, number, rejected.index)),
        evidence={"op": rejected.op, "message": rejected.message},
    )
