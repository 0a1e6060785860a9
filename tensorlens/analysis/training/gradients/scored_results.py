"""Finds losses that are sums or means of the results of a module, as an actor's loss is of the values of a critic.

Such a loss has no target: it only raises or lowers the results. A loss that fits the module compares them.
"""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.lineage import MAX_CALLS, graph_leaves
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import LINEAR, SUMS, op_name
from tensorlens.analysis.training.loss_calls import recorded_above
from tensorlens.records.model import Backward, Call

_CHOOSING = frozenset(
    "min max minimum maximum amin getitem select unbind chunk split unsqueeze permute transpose".split()
)
_DIFFERENCES = frozenset(("sub", "isub", "rsub", "binary_cross_entropy"))
_MOST_CALLS = 64  # that are looked at for an input from the other parameters


def scored_result(
    facts: TraceIndex, alone: Backward, further: Backward, leaves: set[int], others: set[int]
) -> Call | None:
    """Returns the last call with `leaves` of a module whose results the loss of the further pass is a sum or mean of.

    The module computes them from a result of the other parameters and from data, as a critic does from an action and a
    state. The loss of the pass alone compares results of the same leaves with values that have no graph.
    """
    found = list(_scored(facts, further, leaves))
    scored = [call for call in found if call is not None]
    if not scored or len(scored) < len(found):
        return None
    if any(call.op.endswith(".apply") for call in recorded_above(facts, further)):
        return None  # a custom Function may turn the gradient
    raised = {number for call in scored for number in _given(call) & leaves}
    if any(call is not None and raised & _given(call) for call in _scored(facts, alone, leaves)):
        return None
    fitted = {number for call in recorded_above(facts, alone) for number in _given(call) & raised}
    compared = next((call for call in scored if fitted & _given(call)), None)
    users = [call for call in recorded_above(facts, further) if leaves & _given(call)][:_MOST_CALLS]
    given = ((access.tensor, call.index) for call in users for access in call.inputs if access.tensor not in leaves)
    is_of_others = any(others & graph_leaves(facts, number, index) for number, index in given)
    is_fit = is_of_others and _has_data(facts, users, leaves, others) and _compares(facts, alone, leaves)
    return compared if is_fit else None


def _has_data(facts: TraceIndex, users: list[Call], leaves: set[int], others: set[int]) -> bool:
    """Returns whether a module is also given values without a graph, beside what other parameters compute."""
    waiting = [(access.tensor, call.index) for call in users for access in call.inputs if access.tensor not in leaves]
    seen = set[int]()
    for number, before in waiting:
        made = next(iter(facts.producers(number, before)), None)
        if not facts.requires_grad(number, before - 1):
            return True
        if made is not None and made.index not in seen and len(seen) < MAX_CALLS and not _given(made) & others:
            seen.add(made.index)
            waiting += [(access.tensor, made.index) for access in made.inputs if access.tensor not in leaves]
    return False


def _compares(facts: TraceIndex, backward: Backward, leaves: set[int]) -> bool:
    """Returns whether the loss of a pass is made of differences of results from values without a graph."""
    for call in recorded_above(facts, backward):
        name = op_name(call)
        if name not in _DIFFERENCES and not name.endswith(("_loss", "cross_entropy", "with_logits", "kl_div")):
            continue
        history = [facts.requires_grad(access.tensor, call.index - 1) for access in call.inputs]
        if len(call.inputs) > 1 and len(set(history)) > 1 and not leaves & _given(call):
            return True
    return False


def _given(call: Call) -> set[int]:
    return {access.tensor for access in call.inputs}


def _scored(facts: TraceIndex, backward: Backward, leaves: set[int]) -> Iterator[Call | None]:
    """Yields the calls with some leaves as inputs that the loss of a pass is a sum of, but for factors.

    None stands for another way by which the loss reaches the leaves.
    """
    waiting, seen = [(root.tensor, backward.index) for root in backward.roots], set[int]()
    for number, before in waiting:
        call = next(iter(facts.producers(number, before)), None)
        if call is None or call.index in seen or len(seen) > MAX_CALLS:
            continue
        seen.add(call.index)
        if leaves & _given(call):
            yield call
            continue
        inputs = dict.fromkeys(access.tensor for access in call.inputs)
        history = [each for each in inputs if facts.requires_grad(each, call.index - 1)]
        if op_name(call) in SUMS or op_name(call) in _CHOOSING or (op_name(call) in LINEAR and len(history) == 1):
            waiting += [(each, call.index) for each in history]
        elif leaves & graph_leaves(facts, number, before):
            yield None
