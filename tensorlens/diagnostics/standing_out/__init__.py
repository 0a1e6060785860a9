"""Says what stands out in the training of a run: measured facts, one sentence each, that may be intended.

A finding of the other families says that something is wrong. A sentence here says only what is so: each module of a
subject, a folder, has a function `find` that yields them. What a finding of the report says already is left out.
"""

from __future__ import annotations

import os
from collections.abc import Collection

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.measured import MeasuredTraining, measured_training
from tensorlens.diagnostics.shared.standing_out_text import Finder
from tensorlens.diagnostics.standing_out.finders import FINDERS, SAID_BY
from tensorlens.records.report import Diagnostic, StandingOut


def standing_out(facts: TraceIndex, findings: Collection[Diagnostic] = ()) -> tuple[StandingOut, ...] | None:
    """Returns what stands out and no finding says; None if the training was not measured."""
    training = measured_training(facts)
    if training is None:
        return None
    found = ((find, each) for find in FINDERS for each in _found(find, training))
    return tuple(each for find, each in found if not _is_said(each, SAID_BY.get(find, frozenset()), findings))


def _is_said(each: StandingOut, codes: frozenset[str], findings: Collection[Diagnostic]) -> bool:
    """Returns whether a finding with one of the codes labels the main line of a sentence."""
    lines = {(label.span.file, label.span.line) for one in findings if one.code in codes for label in one.labels}
    return any((label.span.file, label.span.line) in lines for label in each.labels[:1])


def _found(find: Finder, training: MeasuredTraining) -> list[StandingOut]:
    """Runs a finder. If it raises on a trace that it does not expect, it finds nothing."""
    try:
        return list(find(training))
    except Exception:
        if os.environ.get("TENSORLENS_DEBUG"):
            raise
        return []
