"""Names losses of pairs that are given the labels 0 and 1, while they take -1 and 1."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.loss_calls import examined_passes, recorded_above
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.analysis.training.value_ranges import made_as_zero_or_one
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.diagnostics.shared.wording import as_written
from tensorlens.records.model import Call
from tensorlens.records.report import StandingOut

_EFFECT = {
    "cosine_embedding_loss": "the loss of a pair with the label 0 is 0, whatever its vectors are",
    "margin_ranking_loss": "the loss of a pair with the label 0 is the margin, whatever its scores are",
    "soft_margin_loss": "the loss of an element with the label 0 is `log(2)`, whatever its score is",
    "hinge_embedding_loss": "an element with the label 0 is treated as if it had both labels",
}
_PLACE = {"soft_margin_loss": 1, "hinge_embedding_loss": 1}
_LEFT_OUT = re.compile(r"mask|valid|weight|keep|present", re.IGNORECASE)


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    """Finds them where the calls that made the labels show that they are 0 and 1."""
    facts, seen = training.facts, set[int]()
    for backward in examined_passes(facts):
        for call in recorded_above(facts, backward):
            if op_name(call) not in _EFFECT or call.site in seen:
                continue
            seen.add(call.site)
            made = _label(facts, call)
            if made is not None:
                yield stands_out(
                    f"{as_written(facts, call)} takes the labels 1 and -1, and is given 0 and 1: "
                    f"{_EFFECT[op_name(call)]}",
                    facts.label("needed_here", call.site, "takes the labels 1 and -1", call.index),
                    facts.label("value_made_here", made.site, "zeros and ones are made here", made.index),
                )


def _label(facts: TraceIndex, loss: Call) -> Call | None:
    """Returns the call that made the labels, if they are zeros and ones that no name calls a choice of pairs."""
    place, node = _PLACE.get(op_name(loss), 2), facts.node_at(loss.site)
    if not isinstance(node, ast.Call) or len(loss.inputs) <= place:
        return None
    named = [each.value for each in node.keywords if each.arg == "target"]
    given = next(iter(named or node.args[place : place + 1]), None)
    if given is None or _LEFT_OUT.search(ast.unparse(given)):
        return None
    made = made_as_zero_or_one(facts, loss.inputs[place].tensor, loss.index)
    names = "" if made is None else " ".join(facts.trace.sites[made.site].targets)
    return None if _LEFT_OUT.search(names) else made
