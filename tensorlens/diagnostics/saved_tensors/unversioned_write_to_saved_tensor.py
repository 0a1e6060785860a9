"""Finds the cause of `unversioned-write-to-saved-tensor`."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.diagnostics.shared.silent_saved_tensor import find_overwritten
from tensorlens.records.report import Diagnostic

CODE = "unversioned-write-to-saved-tensor"


def find(facts: TraceIndex) -> Iterator[Diagnostic]:
    return find_overwritten(facts, CODE)
