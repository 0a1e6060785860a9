"""Makes the findings that no rank of a distributed run shows by itself: finders of the family `distributed` compare the
traces of all ranks."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.diagnostics.ignored import without_commented
from tensorlens.diagnostics.shared.ranked_facts import RankedDiagnostic, RankedFacts
from tensorlens.records.error_messages import Entry, entries
from tensorlens.records.merged_report import MergedReport, RankedFinding
from tensorlens.records.report import Report

_ORDER = {"error": 0, "warning": 1, "note": 2}


def with_findings_between(merged: MergedReport, passes: Callable[[Report], Report]) -> MergedReport:
    """Returns the report with the findings that compare ranks. `passes` leaves out those that a user has ignored."""
    by_rank = {each.trace.script.rank.number: each for each in merged.reports if each.trace.script.rank is not None}
    if len(by_rank) < 2 or any(each.trace.inspection.switches for each in merged.reports):
        return merged  # a sampled run has no number of every step
    facts = RankedFacts({rank: TraceIndex(each.trace) for rank, each in by_rank.items()})
    found: list[RankedFinding] = []
    for code in sorted((each for each in entries() if each.compares_ranks), key=lambda each: each.order):
        for each in _found(code, facts):
            report = passes(without_commented(Report(by_rank[each.ranks[0]].trace, (each.diagnostic,))))
            ranks = tuple(sorted(each.ranks))
            found += [RankedFinding(left, ranks, by_rank[each.ranks[0]]) for left in report.diagnostics]
    if not found:
        return merged
    replaced = {each.diagnostic.code for each in found}
    own = [each for each in merged.findings if each.diagnostic.code not in replaced]
    ordered = sorted((*own, *found), key=lambda each: _ORDER[each.diagnostic.severity])
    return replace(merged, findings=tuple(ordered))


def _found(code: Entry, facts: RankedFacts) -> Iterable[RankedDiagnostic]:
    """Runs one finder. If it raises on a trace that it does not expect, it finds nothing."""
    module = importlib.import_module(f"tensorlens.diagnostics.{code.family}.{code.stem}")
    find: Callable[[RankedFacts], Iterator[RankedDiagnostic]] = module.find
    try:
        return list(find(facts))
    except Exception:
        if os.environ.get("TENSORLENS_DEBUG"):
            raise
        return []
