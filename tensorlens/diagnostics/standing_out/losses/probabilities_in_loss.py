"""Names losses that are given probabilities where they take scores, or logarithms, and rates for their logarithms."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.losses.loss_inputs import unfit_inputs
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.diagnostics.shared.wording import as_written
from tensorlens.records.report import StandingOut

_TAKES = {
    "cross_entropy": "computes the softmax of what it is given",
    "binary_cross_entropy_with_logits": "computes the sigmoid of what it is given",
    "multilabel_soft_margin_loss": "computes the sigmoid of what it is given",
    "nll_loss": "takes logarithms of probabilities",
    "kl_div": "takes logarithms of probabilities",
    "ctc_loss": "takes logarithms of probabilities",
    "poisson_nll_loss": "takes logarithms of rates",
}


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    facts = training.facts
    if training.training.is_hidden:
        return
    for each in unfit_inputs(training.training):
        name, made = op_name(each.loss), op_name(each.made)
        takes_logarithms = "logarithms" in _TAKES[name]
        shown = "`exp()`" if made == "exp" else f"a {made}"
        given = f"and is given the result of {shown}" if takes_logarithms else f"which is a {made} already"
        if each.is_activation and not takes_logarithms:
            given = f"which is the result of a {made}, and never negative"
        yield stands_out(
            f"{as_written(facts, each.loss)} {_TAKES[name]}, {given}",
            facts.label("needed_here", each.loss.site, "the loss", each.loss.index),
            facts.label("value_made_here", each.made.site, f"the {made}", each.made.index),
        )
