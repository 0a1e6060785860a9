"""Describes a gradient of compiled code that differs in a run that compiles nothing (`--reference=eager`)."""

from __future__ import annotations

from collections.abc import Iterator
from math import isfinite

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.diagnostics.shared.wording import named
from tensorlens.records.eager import EagerComparison
from tensorlens.records.model import Backward
from tensorlens.records.observations import Compiled
from tensorlens.records.reference import Difference
from tensorlens.records.report import Label

SHOWN = 5  # values of a gradient in a row


def worst_of(comparison: EagerComparison) -> Difference:
    """Returns the gradient that differs most."""
    return max(comparison.differences, key=lambda each: each.relative)


def backward_of(facts: TraceIndex, comparison: EagerComparison) -> Backward | None:
    """Returns the pass that differs."""
    event = facts.event(comparison.differences[0].backward)
    return event if isinstance(event, Backward) else None


def compiled_of(facts: TraceIndex, comparison: EagerComparison) -> Compiled | None:
    """Returns the compiled function that has other gradients when it alone is compiled."""
    known = (each for each in facts.trace.inspection.compiled if each.number in comparison.functions)
    return next(known, None)


def values_block(facts: TraceIndex, comparison: EagerComparison) -> str:
    """Writes the values of the compiled run above those of the eager run and of double precision, in columns."""
    worst = worst_of(comparison)
    named_rows = [("compiled", worst.got), ("eager", worst.right)]
    named_rows += [("in double", comparison.exact)] if comparison.exact else []
    rows = [[f"{value:.4g}" for value in values[:SHOWN]] for _, values in named_rows]
    width = max((len(text) for row in rows for text in row), default=0)
    most = min(max(len(values) for _, values in named_rows), SHOWN)
    more = " ..." if worst.start + most < worst.values else ""
    texts = [" ".join(text.rjust(width) for text in row) + more if row else "None" for row in rows]
    first = f", from element {worst.start} on" if worst.start else ""
    name = named(facts, worst.tensor, worst.backward)
    lines = [f"{heading:<9}  {text}" for (heading, _), text in zip(named_rows, texts, strict=True)]
    return "\n".join([f"gradient of {name}{first}", *lines])


def difference_size(comparison: EagerComparison) -> Iterator[str]:
    """Says how large the difference is, of how many gradients, and with which random numbers."""
    worst = worst_of(comparison)
    others = len(comparison.differences) - 1
    if worst.got and worst.right and isfinite(worst.relative):
        more = f", and {others} more gradient{'s differ' if others > 1 else ' differs'}" if others else ""
        yield f"the largest difference is {100 * worst.relative:.3g} % of the largest eager value{more}"
    if comparison.random:
        yield "compared with the random numbers of eager code (`torch._inductor.config.fallback_random`)"


def compile_labels(facts: TraceIndex, compiled: Compiled | None) -> Iterator[Label | None]:
    """Makes the labels of the line that compiles and of the code that is compiled."""
    if compiled is None:
        return
    defined = None if compiled.function is None else facts.trace.callbacks.functions[compiled.function].defined
    yield facts.label("compiled_here", compiled.site, f"`{compiled.name}` is compiled here")
    if not facts.same_line(defined, compiled.site):
        yield facts.label("function_defined_here", defined, "the code that is compiled")
