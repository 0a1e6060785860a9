"""Names forward hooks that detach what a trained module returns, as well as results that have no graph.

A hook that is to keep the result of a teacher and that of a student gives the student no gradient then.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from tensorlens.analysis.lineage import graph_leaves
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name, trained_by
from tensorlens.analysis.training.hook_functions import in_hooks
from tensorlens.analysis.training.loss_calls import examined_passes, recorded_above
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.diagnostics.shared.standing_out_text import listed, stands_out
from tensorlens.diagnostics.shared.wording import as_written
from tensorlens.records.model import Call
from tensorlens.records.report import StandingOut

_CUTTING = frozenset(("detach", "get"))  # `.data` is read by a `__get__`


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    facts = training.facts
    cuts = _in_hooks(facts)
    for backward in examined_passes(facts) if cuts and not training.training.is_hidden else ():
        used = trained_by(training.training, backward)
        read = {access.tensor for call in recorded_above(facts, backward) for access in call.inputs}
        for site, calls in list(cuts.items()):
            own = [call for call in calls if call.index < backward.index and call.outputs[0].tensor in read]
            cut = [call for call in own if facts.requires_grad(call.inputs[0].tensor, call.index - 1)]
            leaves = set[int]().union(*(graph_leaves(facts, call.inputs[0].tensor, call.index) for call in cut))
            rows = [row for row in training.rows if row.tensor in used & leaves]
            if rows and len(cut) < len(own):
                del cuts[site]
                yield stands_out(
                    f"{as_written(facts, cut[0])} of a forward hook detaches results without a graph, and what is "
                    f"computed from {listed(rows)}, too: the loss gives these no gradient through it",
                    facts.label("graph_cut_here", site, "the gradient stops here", cut[0].index),
                    facts.label("needed_here", backward.site, "backward"),
                )


def _in_hooks(facts: TraceIndex) -> dict[int, list[Call]]:
    """Returns the calls inside forward hooks that take a tensor out of its graph, by their site."""
    found: dict[int, list[Call]] = defaultdict(list)
    cutting = (call for call in facts.calls if op_name(call) in _CUTTING and call.inputs and call.outputs)
    for call in in_hooks(facts, cutting, "forward hook"):
        found[call.site].append(call)
    return found
