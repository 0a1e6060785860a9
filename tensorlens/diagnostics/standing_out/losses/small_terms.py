"""Names terms of a loss that give next to none of the gradient of the parameters that they reach."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.training.losses import losses, term_name
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.analysis.training.term_shares import shares
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.diagnostics.shared.wording import named
from tensorlens.records.report import StandingOut

_SMALL = 1e-3  # of the sum of the norms
_MIN_PASSES = 2


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    """Finds these terms, if a second run has measured the gradient of each term alone."""
    facts = training.facts
    if not facts.trace.inspection.term_gradients:
        return
    for loss in losses(facts):
        for place, found in sorted(shares(training, loss).items()):
            values = [value for each in found.values() for value in each]
            passes = max(map(len, found.values()))
            if passes < _MIN_PASSES or max(values) >= _SMALL:
                continue
            term = loss.terms[place]
            last = term.terms[-1]
            if "`" not in named(facts, last.tensor, last.added.index):
                continue  # no text of the script names it
            owners = " and ".join(f"`{''.join(owner)}`" for owner in found)
            yield stands_out(
                f"the term `{term_name(facts, last)}` of the loss gives {owners} less than 0.1 % of "
                f"the gradient at each of {passes} measured passes: the other terms give the rest",
                facts.label("value_made_here", term.site, "the term is computed here"),
                facts.label("needed_here", loss.site, "backward"),
            )
