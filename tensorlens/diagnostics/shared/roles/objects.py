"""Finds causes other than the rejected call's tensors: Python values, optimizers, modules, earlier backward passes."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from tensorlens.analysis.lineage import leaves_above
from tensorlens.analysis.missing_gradient import cut_between
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.diagnostics.shared.rejected_call import LabelledSite, RejectedCall
from tensorlens.diagnostics.shared.roles.tensors import failing_call
from tensorlens.diagnostics.shared.wording import op_text
from tensorlens.records.failure_context import Assignment, Value
from tensorlens.records.model import Backward, Call

_ITERATORS = ("generator", "map", "filter", "zip", "enumerate", "chain", "islice", "dict_values")
_CONTAINERS = ("list", "tuple", "dict", "set", "frozenset", *_ITERATORS)


# --- plain values ---------------------------------------------------------------------------------------------------


def plain(rejected: RejectedCall) -> LabelledSite | None:
    """Finds the Python value that the rejected expression reads last, else the expression itself."""
    return _described(rejected.values[-1]) if rejected.values else _inline(rejected)


def container(rejected: RejectedCall) -> LabelledSite | None:
    """Finds the first list, dict, iterator or the like that the rejected expression reads, else the expression
    itself."""
    container = next((value for value in rejected.values if value.type in _CONTAINERS), None)
    return _inline(rejected) if container is None else _described(container)


def _described(value: Value) -> LabelledSite | None:
    if value.type in _ITERATORS and value.used is not None:
        return LabelledSite(None, value.used, f"uses up the iterator `{value.name}`")
    article = "an" if value.type[0] in "aeiou" else "a"
    return LabelledSite(None, value.site, f"`{value.name}` is {article} `{value.type}`")


def _inline(rejected: RejectedCall) -> LabelledSite:
    return LabelledSite(None, rejected.site, f"passed to {op_text(rejected.op)} here" if rejected.op else "passed here")


# --- optimizers -----------------------------------------------------------------------------------------------------


def optimizer(rejected: RejectedCall) -> LabelledSite | None:
    """Finds the line that made the optimizer of the call's parameters: the rejected line, or an earlier one."""
    if rejected.op.startswith("optim."):
        return failing_call(rejected)
    made = optimizer_of(rejected)
    return None if made is None else LabelledSite(None, made.site, f"`{made.op}` collects its parameters here")


def optimizer_of(rejected: RejectedCall) -> Call | None:
    """Finds the last optimizer made of the call's tensors; for calls without tensors, the only one that was made."""
    tensors = {access.tensor for access in rejected.inputs}
    made = [c for c in rejected.facts.calls if c.op.startswith("optim.") and c.index < rejected.index]
    own = [c for c in made if tensors & {access.tensor for access in c.inputs}]
    return next(reversed(own), None) if tensors else made[0] if len(made) == 1 else None


def first_half(rejected: RejectedCall) -> LabelledSite | None:
    """Finds the last call of the same class on the same tensors, such as the first `GradScaler.unscale_`."""
    tensors = {access.tensor for access in rejected.inputs}
    owner = rejected.op.partition(".")[0] + "."
    same = (c for c in reversed(rejected.facts.calls) if c.index < rejected.index and c.op.startswith(owner))
    call = next((c for c in same if not tensors or tensors & {a.tensor for a in c.inputs}), None)
    return None if call is None else LabelledSite(None, call.site, f"{op_text(call.op)} was called before")


# --- gradients ------------------------------------------------------------------------------------------------------


def gradient(rejected: RejectedCall) -> LabelledSite | None:
    """Finds the backward pass that gave the call's tensors their gradients, preferably an infinite or NaN one."""
    passes = list(_gave_gradients(rejected))
    broken = [event for event in passes if any(word in event[2] for word in ("nan", "inf"))]
    if not passes:
        return None
    event, tensor, text = (broken or passes)[-1]
    what = f": {text}" if text.startswith(("[", "nan", "inf", "-inf")) else ""
    return LabelledSite(tensor, event.site, f"gives {rejected.name(tensor)} its gradient{what}")


def _gave_gradients(rejected: RejectedCall) -> Iterable[tuple[Backward, int, str]]:
    tensors = {access.tensor for access in rejected.inputs}
    for event in rejected.facts.backwards:
        if event.index < rejected.index:
            for change in event.gradients:
                if change.tensor in tensors and change.after is not None:
                    yield event, change.tensor, change.after


def used_in_graph(rejected: RejectedCall) -> LabelledSite | None:
    """Finds the last recorded operation on the call's tensors."""
    tensors = {access.tensor for access in rejected.inputs}
    for call in reversed(rejected.facts.calls):
        if call.index < rejected.index and call.nodes[1] > call.nodes[0]:
            number = next((access.tensor for access in call.inputs if access.tensor in tensors), None)
            if number is not None:
                return LabelledSite(number, call.site, f"uses {rejected.name(number)}")
    return None


def cut(rejected: RejectedCall) -> LabelledSite | None:
    """Finds the cut between the call's tensors and a loss that backward was called on."""
    facts = rejected.facts
    for event in reversed(facts.backwards):
        if event.index >= rejected.index:
            continue
        for root in event.roots:
            for access in rejected.inputs:
                path, _ = cut_between(facts, root.tensor, access.tensor, event.index)
                if path is not None:
                    text = "the gradient stops here"
                    return LabelledSite(path.source, path.call.site, text)
    return None


def unreached_leaf(rejected: RejectedCall) -> LabelledSite | None:
    """Finds the line that froze, or made, a parameter of the call that no backward pass reached; frozen ones come
    first."""
    facts = rejected.facts
    parameters = [a.tensor for a in rejected.inputs if facts.tensor(a.tensor).type == "Parameter"]
    frozen = [number for number in parameters if not facts.requires_grad(number, rejected.index)]
    left = frozen or never_reached(facts, parameters, rejected.index)
    if not left:
        return None
    number = left[0]
    if number in frozen:
        site, what = _frozen_at(facts, number, rejected.index), "does not require grad from here on"
    else:
        use = facts.first_use(number)
        site, what = None if use is None else use.site, "is made here; no gradient reached it"
    return LabelledSite(number, site, f"{rejected.name(number)} {what}")


def _frozen_at(facts: TraceIndex, number: int, before: int) -> int | None:
    """Finds the last call that switched `requires_grad` of a tensor off; without one, the call that made it."""
    calls = [c for c in facts.calls if c.index < before and any(s.tensor == number for s in c.states)]
    off = [c for c in calls if facts.requires_grad(number, c.index - 1) and not facts.requires_grad(number, c.index)]
    use = off[-1] if off else facts.first_use(number)
    return None if use is None else use.site


def converted_leaf(rejected: RejectedCall) -> LabelledSite | None:
    """Finds the line that last changed the data type of the call's first leaf, else the line that made the leaf."""
    facts = rejected.facts
    number = rejected.first(rejected.is_leaf)
    if number is None:
        return None
    before = (call for call in reversed(facts.calls) if call.index < rejected.index)
    use = next((call for call in before if _converts(facts, call, number)), None) or facts.first_use(number)
    return (
        None
        if use is None
        else LabelledSite(number, use.site, f"{rejected.name(number)} has its data type from here on")
    )


def _converts(facts: TraceIndex, call: Call, number: int) -> bool:
    if call.op != "Tensor.data.__set__" or len(call.inputs) < 2 or call.inputs[0].tensor != number:
        return False
    return facts.tensor(call.inputs[1].tensor).dtype != facts.tensor(number).dtype


def module_call(rejected: RejectedCall) -> LabelledSite:
    return LabelledSite(None, rejected.site, f"{op_text(rejected.op)} is called here")


# --- modules --------------------------------------------------------------------------------------------------------


def replaced(rejected: RejectedCall) -> LabelledSite | None:
    """Finds the assignment to a module that removed one of the call's tensors from it."""
    tensors = {access.tensor for access in rejected.inputs}
    change = _last(rejected, lambda a: bool(tensors & (set(a.old) - set(a.new))))
    return None if change is None else LabelledSite(None, change.site, f"`{change.name}` is replaced here")


def swapped(rejected: RejectedCall) -> LabelledSite | None:
    """Finds the line that swapped a leaf, from which the call's tensors were computed, for another tensor."""
    facts = rejected.facts
    leaves = {leaf for access in rejected.inputs for leaf in leaves_above(facts, access.tensor, rejected.index)}
    change = _last(rejected, lambda a: bool(leaves & {*a.old, *a.new}))
    if change is None:
        return None
    number = next(n for n in (*change.old, *change.new) if n in leaves)
    return LabelledSite(number, change.site, f"{rejected.name(number)} becomes a different tensor here")


def shared(rejected: RejectedCall) -> LabelledSite | None:
    """Finds the assignment that put a parameter into a second place, preferably one that the call got twice."""
    tensors = [access.tensor for access in rejected.inputs]
    twice = {number for number in tensors if tensors.count(number) > 1}
    change = _last(rejected, lambda a: a.shared and bool((twice or set(tensors)) & set(a.new)))
    if change is None:
        return None
    number = next(n for n in change.new if n in (twice or tensors))
    return LabelledSite(number, change.site, f"from here on {rejected.name(number)} has two places")


def _last(rejected: RejectedCall, wanted: Callable[[Assignment], bool]) -> Assignment | None:
    before = [a for a in rejected.facts.trace.assignments if a.index <= rejected.index and wanted(a)]
    return before[-1] if before else None


def never_reached(facts: TraceIndex, numbers: Iterable[int], before: int) -> list[int]:
    """Lists those of the tensors to which no backward pass before an event gave a gradient."""
    reached = {change.tensor for event in facts.backwards if event.index < before for change in event.gradients}
    return [number for number in numbers if number not in reached]


ROLES: dict[str, Callable[[RejectedCall], LabelledSite | None]] = {
    "value_made_here:plain": plain,
    "value_made_here:container": container,
    "value_made_here:gradient": gradient,
    "accumulated_here": gradient,
    "modified_here:before": first_half,
    "optimizer_made_here": optimizer,
    "graph_built_here:use": used_in_graph,
    "graph_cut_here:gradient": cut,
    "leaf_made_here:converted": converted_leaf,
    "leaf_made_here:unreached": unreached_leaf,
    "called_here:module": module_call,
    "replaced_here": replaced,
    "replaced_here:swapped": swapped,
    "shared_here:module": shared,
}
