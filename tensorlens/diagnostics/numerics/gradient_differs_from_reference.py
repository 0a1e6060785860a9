"""Finds the cause of `gradient-differs-from-reference`."""

from __future__ import annotations

from collections.abc import Iterator
from math import isfinite

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.diagnostics.shared.optimizers import titled
from tensorlens.diagnostics.shared.wording import finding, fix, named
from tensorlens.records.model import Backward
from tensorlens.records.reference import Difference, Reference
from tensorlens.records.report import Diagnostic, Label

CODE = "gradient-differs-from-reference"
SHOWN = 6  # values of a gradient


def find_unreported(facts: TraceIndex) -> Iterator[Diagnostic]:
    """Reports gradients that differ in the second run, and that no other finding explains."""
    reference = facts.trace.reference
    if reference is None or not reference.differences:
        return
    backward = facts.event(reference.differences[0].backward)
    if isinstance(backward, Backward):
        yield _report(facts, reference, backward)


def _report(facts: TraceIndex, reference: Reference, backward: Backward) -> Diagnostic:
    worst = max(reference.differences, key=lambda difference: difference.relative)
    numbers = list(dict.fromkeys(difference.tensor for difference in reference.differences))
    name, names = titled(facts, numbers)
    other = "another gradient" if len(numbers) == 1 else "other gradients"
    return finding(
        CODE,
        "warning",
        f"a second run, which keeps copies of saved tensors, has {other} of {name}",
        "something wrote to a saved tensor, unseen by autograd, or the program computes something else in each run",
        [
            facts.label("needed_here", backward.site, "may compute with changed values"),
            *_leaves(facts, reference),
        ],
        notes=(_block(facts, worst),),
        fixes=(
            fix(
                "look for a write to the memory of a tensor between the forward pass and this line",
                place=facts.span(backward.site),
            ),
        ),
        evidence={"largest": worst.largest, "relative": worst.relative, "tensors": len(reference.differences)},
        detail=(*names, *_size(worst)),
    )


def _block(facts: TraceIndex, worst: Difference) -> str:
    """Writes the values of this run above those of the second, column by column."""
    rows = [[f"{value:.4g}" for value in values[:SHOWN]] for values in (worst.got, worst.right)]
    width = max((len(text) for row in rows for text in row), default=0)
    more = (
        " ..."
        if worst.start + max(len(worst.got), len(worst.right)) < worst.values
        or any(len(values) > SHOWN for values in (worst.got, worst.right))
        else ""
    )
    name = named(facts, worst.tensor, worst.backward)
    wrong, right = (" ".join(text.rjust(width) for text in row) + more if row else "None" for row in rows)
    first = f", from element {worst.start} on" if worst.start else ""
    return f"gradient of {name}{first}\nthis run     {wrong}\nwith copies  {right}"


def _size(worst: Difference) -> tuple[str, ...]:
    if not (worst.got and worst.right and isfinite(worst.relative)):
        return ()
    return (
        f"the largest difference is {worst.largest:.4g}, {100 * worst.relative:.3g} % of the largest value with copies",
    )


def _leaves(facts: TraceIndex, reference: Reference) -> Iterator[Label | None]:
    for number in dict.fromkeys(difference.tensor for difference in reference.differences[:3]):
        made = facts.first_use(number)
        yield facts.label("leaf_made_here", None if made is None else made.site, "its gradient differs")
