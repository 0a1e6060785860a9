"""Finds the cause of `compiled-gradient-differs`."""

from __future__ import annotations

from collections.abc import Iterator
from math import isfinite

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.diagnostics.shared.eager_gradients import (
    backward_of,
    compile_labels,
    compiled_of,
    difference_size,
    values_block,
    worst_of,
)
from tensorlens.diagnostics.shared.wording import finding, fix, named
from tensorlens.records.eager import EagerComparison
from tensorlens.records.report import Diagnostic


def find(facts: TraceIndex) -> Iterator[Diagnostic]:
    """Finds gradients that differ in a run that compiles nothing, and that no late hook explains."""
    comparison = facts.trace.eager
    if comparison is None or not comparison.differences or comparison.hooks:
        return
    backward, worst = backward_of(facts, comparison), worst_of(comparison)
    if backward is None:
        return
    compiled = compiled_of(facts, comparison)
    name = "the compiled code" if compiled is None else f"compiled `{compiled.name}`"
    leaf = named(facts, worst.tensor, worst.backward)
    yield finding(
        "compiled-gradient-differs",
        "warning",
        f"{name} gives {leaf} another gradient than the same code run without `torch.compile`",
        "what the compiled code computes is not what the code says: each kind of run repeats itself, and they differ",
        [
            facts.label("needed_here", backward.site, "the first pass with other gradients"),
            *compile_labels(facts, compiled),
        ],
        notes=(values_block(facts, comparison),),
        fixes=(
            fix(
                "look for values that change after compilation and that it does not check: globals that a `backward` "
                "or hook reads, constant results, skipped guards; and for writes of custom operators that "
                "`mutates_args` does not name",
                place=None if compiled is None or compiled.site is None else facts.span(compiled.site),
            ),
        ),
        evidence={"largest": worst.largest, "relative": worst.relative, "tensors": len(comparison.differences)},
        detail=(*difference_size(comparison), *_beyond_rounding(comparison)),
    )


def _beyond_rounding(comparison: EagerComparison) -> Iterator[str]:
    if comparison.in_double and isfinite(worst_of(comparison).relative):
        yield "double precision is much closer to the eager gradient: this is not rounding"
