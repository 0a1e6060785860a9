"""Names forward hooks that detach what a trained module returns, as well as results that have no graph.

A hook that is to keep the result of a teacher and that of a student gives the student no gradient then.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from tensorlens.analysis.lineage import ancestry, graph_leaves
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name, trained_by
from tensorlens.analysis.training.hook_functions import in_hooks, registration_around
from tensorlens.analysis.training.loss_calls import examined_passes, recorded_above
from tensorlens.analysis.training.measured import MeasuredTraining, ParameterRow
from tensorlens.diagnostics.shared.standing_out_text import listed, stands_out
from tensorlens.diagnostics.shared.wording import as_written
from tensorlens.records.model import Backward, Call
from tensorlens.records.report import StandingOut

_CUTTING = frozenset(("detach", "get"))  # `.data` is read by a `__get__`
_MAX_CALLS = 64


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    """Finds them if an optimizer steps parameters of the module: with the gradients of other ways to the loss, or with
    none in the whole run."""
    facts = training.facts
    cuts = _in_hooks(facts)
    without = {row.tensor for row in training.rows if row.is_stepped and row.requires_grad and _has_none(row)}
    for backward in examined_passes(facts) if cuts and not training.training.is_hidden else ():
        used = trained_by(training.training, backward)
        read = {access.tensor for call in recorded_above(facts, backward) for access in call.inputs}
        constants = _constants(facts, backward) if without else set[int]()
        for site, calls in list(cuts.items()):
            before = [call for call in calls if call.index < backward.index]
            own = [call for call in before if call.outputs[0].tensor in read]
            cut = _with_graph(facts, own)
            rows = _made_from(training, cut, used) if len(cut) < len(own) else []
            if not rows and len(_with_graph(facts, before)) < len(before):
                cut = _with_graph(facts, [call for call in before if call.outputs[0].tensor in constants])
                rows = _made_from(training, cut, without)
            if rows:
                del cuts[site]
                hook = registration_around(facts, cut[0], "forward hook")
                yield stands_out(
                    f"{as_written(facts, cut[0])} of a forward hook detaches what is computed from {listed(rows)}, not "
                    "only results without a graph: the loss gives these no gradient through it",
                    facts.label("graph_cut_here", site, "the gradient stops here", cut[0].index),
                    facts.label("needed_here", backward.site, "backward"),
                    None if hook is None else facts.label("hook_registered_here", hook.site, "the hook"),
                )


def _has_none(row: ParameterRow) -> bool:
    return row.statistics is None or not row.statistics.filled


def _with_graph(facts: TraceIndex, calls: list[Call]) -> list[Call]:
    """Returns those of some calls that detach a result with a graph."""
    return [call for call in calls if facts.requires_grad(call.inputs[0].tensor, call.index - 1)]


def _made_from(training: MeasuredTraining, cut: list[Call], numbers: set[int]) -> list[ParameterRow]:
    """Returns those of some parameters that what was detached is computed from."""
    leaves = set[int]().union(*(graph_leaves(training.facts, call.inputs[0].tensor, call.index) for call in cut))
    return [row for row in training.rows if row.tensor in numbers & leaves]


def _constants(facts: TraceIndex, backward: Backward) -> set[int]:
    """Returns what the constants of a pass were computed from."""
    found = set[int]()
    for call in recorded_above(facts, backward):
        for number in (
            access.tensor for access in call.inputs if not facts.requires_grad(access.tensor, call.index - 1)
        ):
            found.add(number)
            found.update(a.tensor for _, made in ancestry(facts, number, call.index, _MAX_CALLS) for a in made.inputs)
    return found


def _in_hooks(facts: TraceIndex) -> dict[int, list[Call]]:
    """Returns the calls inside forward hooks that take a tensor out of its graph, by their site."""
    found: dict[int, list[Call]] = defaultdict(list)
    cutting = (call for call in facts.calls if op_name(call) in _CUTTING and call.inputs and call.outputs)
    for call in in_hooks(facts, cutting, "forward hook"):
        found[call.site].append(call)
    return found
