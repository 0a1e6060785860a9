"""Finds the cause of `branch-detached`."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.diagnostics.shared.cut_off_parameters import find_cut_off, find_unused
from tensorlens.records.report import Diagnostic


def find(facts: TraceIndex) -> Iterator[Diagnostic]:
    yield from find_cut_off(facts, "branch-detached", lambda cut: cut.call.op != "nn.Parameter")
    yield from find_unused(facts, "branch-detached")
