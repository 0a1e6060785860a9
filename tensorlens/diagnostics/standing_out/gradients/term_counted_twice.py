"""Names terms of a loss whose gradient counts in two backward passes before one step."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.gradients.recounted_terms import RecountedTerm, recounted_terms
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.diagnostics.shared.wording import as_written, named
from tensorlens.records.model import Backward
from tensorlens.records.report import Label, StandingOut


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    """Finds these terms. `retain_graph=True` makes the second pass possible, and nothing clears in between."""
    facts = training.facts
    if training.training.is_hidden:
        return
    for found in recounted_terms(training.training):
        yield _sentence(facts, found)


def _sentence(facts: TraceIndex, found: RecountedTerm) -> StandingOut:
    first, second = found.first, found.second
    term = named(facts, found.term, first.index if found.is_first else found.at)
    text = f"the gradient of {term} counts in two backward passes before one step"
    if first.site == second.site:
        return stands_out(f"{text}: {as_written(facts, first)} runs both", _label(facts, second, "runs both"))
    what = [_part(facts, first, found.is_first, term), _part(facts, second, found.is_second, term)]
    labels = _label(facts, second, "the second pass"), _label(facts, first, "the first pass")
    return stands_out(f"{text}: {what[0]} and {what[1]}", *labels)


def _label(facts: TraceIndex, backward: Backward, text: str) -> Label | None:
    return facts.label("accumulated_here", backward.site, text, backward.index)


def _part(facts: TraceIndex, backward: Backward, is_root: bool, term: str) -> str:
    """Says how a term is in the loss of a pass: "`total.backward()` (as a part of `total`)"."""
    code, root = as_written(facts, backward), named(facts, backward.roots[0].tensor, backward.index)
    return code if is_root or root == term or len(backward.roots) > 1 else f"{code} (as a part of {root})"
