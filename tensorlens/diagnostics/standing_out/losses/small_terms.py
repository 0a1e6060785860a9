"""Names terms of a loss that give next to none of the gradient of the parameters that they reach, although they have no
weight that says so.
"""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.losses.meant_small import is_meant_small
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.analysis.training.summed_terms import losses, term_name
from tensorlens.analysis.training.term_shares import shares
from tensorlens.diagnostics.shared.optimizers import listed
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.diagnostics.shared.wording import named
from tensorlens.records.report import Label, StandingOut

_SMALL = 1e-3  # of the sum of the norms
_MIN_PASSES = 2


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    """Finds these terms, if a second run has measured the gradient of each term alone."""
    facts = training.facts
    if not facts.trace.inspection.term_gradients:
        return
    for loss in losses(facts):
        small: dict[tuple[str, int], dict[str, int | None]] = {}  # owners and passes -> sites of terms
        for place, found in sorted(shares(training, loss).items()):
            values = [value for each in found.values() for value in each]
            passes = max(map(len, found.values()))
            if passes < _MIN_PASSES or max(values) >= _SMALL:
                continue
            term = loss.terms[place]
            if is_meant_small(facts, loss, term, max(values) == 0):
                continue
            last = term.terms[-1]
            if "`" in named(facts, last.tensor, last.added.index):  # otherwise no text of the script names it
                owners = " and ".join(f"`{''.join(owner)}`" for owner in found)
                small.setdefault((owners, passes), {}).setdefault(f"`{term_name(facts, last)}`", term.site)
        for (owners, passes), terms in small.items():
            given = "the term" if len(terms) == 1 else "each of the terms"
            yield stands_out(
                f"{given} {listed(list(terms))} of the loss gives {owners} less than 0.1 % of the gradient at each of "
                f"{passes} measured passes: the other terms give the rest",
                *_labels(facts, terms),
                facts.label("needed_here", loss.site, "backward"),
            )


def _labels(facts: TraceIndex, terms: dict[str, int | None]) -> list[Label | None]:
    """Labels the lines that compute terms, each once."""
    lines: dict[int, Label | None] = {}
    for term, site in terms.items():
        if site is not None:
            label = facts.label("value_made_here", site, f"{term} is computed here")
            lines.setdefault(facts.trace.sites[site].span.line, label)
    return list(lines.values())
