"""Says what stands out in the training of a run: measured facts, one sentence each, that may be intended.

A finding of the other families says that something is wrong. A sentence here says only what is so: each module has a
function `find` that yields them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.measured import MeasuredTraining, measured_training
from tensorlens.diagnostics.standing_out import first_nonfinite, moved_without_gradient, no_optimizer, zero_gradient
from tensorlens.records.report import StandingOut

Finder = Callable[[MeasuredTraining], Iterator[StandingOut]]
FINDERS: tuple[Finder, ...] = (
    first_nonfinite.find,
    no_optimizer.find,
    zero_gradient.find,
    moved_without_gradient.find,
)
"""In the order in which their sentences are shown."""


def standing_out(facts: TraceIndex) -> tuple[StandingOut, ...] | None:
    """Returns what stands out; None if the training was not measured."""
    training = measured_training(facts)
    if training is None:
        return None
    return tuple(each for find in FINDERS for each in _found(find, training))


def _found(find: Finder, training: MeasuredTraining) -> list[StandingOut]:
    """Runs a finder. If it raises on a trace that it does not expect, it finds nothing."""
    try:
        return list(find(training))
    except Exception:
        if os.environ.get("TENSORLENS_DEBUG"):
            raise
        return []
