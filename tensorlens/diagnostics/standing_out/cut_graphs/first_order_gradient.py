"""Names gradients that entered a loss as constants, although they are computed from what the loss trains."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tensorlens.analysis.training.constant_terms import constant_terms
from tensorlens.analysis.training.cut_graphs.first_order import first_order_gradients
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.diagnostics.shared.standing_out_text import listed, stands_out
from tensorlens.diagnostics.shared.wording import as_written
from tensorlens.records.report import StandingOut

_MEANT = re.compile(r"first[-_ ]?order|fomaml", re.IGNORECASE)


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    """Finds these calls, unless `loss-term-is-constant` names them or their file says that it is of first order."""
    facts = training.facts
    if training.training.is_hidden:
        return
    reports = facts.trace.script.failure is None
    said = {term.cut.site for term in constant_terms(training.training)} if reports else set()
    for found in first_order_gradients(training.training):
        rows = [row for row in training.rows if row.tensor in found.trained]
        span = facts.span(found.gradient.site)
        is_meant = span is not None and _MEANT.search(facts.trace.sources.get(span.file, ""))
        if rows and found.gradient.site not in said and not is_meant:
            entered = found.entered
            yield stands_out(
                f"the gradient of `autograd.grad()` enters the loss at {as_written(facts, entered)} as a constant, "
                f"because `create_graph` is not set; it is computed from {listed(rows)}, which the run trains",
                facts.label("graph_cut_here", found.gradient.site, "a gradient without a graph", found.gradient.index),
                facts.label("value_made_here", entered.site, "enters the loss", entered.index),
                facts.label("needed_here", found.backward.site, "backward"),
            )
