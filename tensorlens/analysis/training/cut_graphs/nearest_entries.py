"""Finds tables that are read at the index of the nearest entry, without a gradient for what the index comes from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tensorlens.analysis.lineage import ancestry, graph_leaves
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name, trained_by
from tensorlens.analysis.training.loss_calls import examined_passes, is_arithmetic, recorded_above
from tensorlens.analysis.training.timeline import Training
from tensorlens.records.model import Backward, Call

_LOOKUPS = frozenset("getitem embedding index_select gather take_along_dim".split())
_PRODUCTS = frozenset("matmul rmatmul mm bmm einsum".split())  # with a row of zeros and a one for each entry
_ONES = frozenset(("one_hot", "scatter"))
_NEAREST = frozenset(("argmin", "min"))
_LARGEST = frozenset(("argmax", "max"))  # of a distance's negative
_RESHAPING = frozenset(
    "view view_as reshape reshape_as flatten unflatten squeeze unsqueeze clone permute transpose swapaxes movedim T mT "
    "contiguous float to type_as".split()
)
_MAX_CALLS = 60
_MAX_HOPS = 6


@dataclass(frozen=True, slots=True)
class NearestEntries:
    """A lookup that gives a layer entries of a table, chosen by their distance from a value that has a graph."""

    lookup: Call
    choice: Call
    layer: Call
    backward: Backward
    parameters: tuple[int, ...]  # behind the value: they get gradients from other terms only


def nearest_entries(training: Training) -> Iterator[NearestEntries]:
    """Yields these lookups, one for each line. A straight-through estimate gives the layer another tensor, and where
    a layer reads the value itself, the model learns by that, too."""
    facts, reported = training.facts, set[int]()
    for backward in examined_passes(facts):
        above = recorded_above(facts, backward)
        lookups = [call for call in above if op_name(call) in _LOOKUPS | _PRODUCTS and call.site not in reported]
        used = trained_by(training, backward) if lookups else set[int]()
        for call in lookups if used else ():
            found = _found(facts, call, above)
            if found is None or not found[2] & used:
                continue
            reported.add(call.site)
            yield NearestEntries(call, found[0], found[1], backward, tuple(sorted(found[2] & used)))


def _found(facts: TraceIndex, call: Call, above: tuple[Call, ...]) -> tuple[Call, Call, set[int]] | None:
    """Returns the call that chose the index, the layer that reads the entries, and the leaves behind the choice."""
    tables = [access.tensor for access in call.inputs if facts.is_leaf_requiring_grad(access.tensor, call.index)]
    index = _index(facts, call)
    if not tables or index is None or not call.outputs:
        return None
    nearby = [made for _, made in ancestry(facts, index, call.index, _MAX_CALLS)]
    if op_name(call) in _PRODUCTS and not any(op_name(made) in _ONES for made in nearby):
        return None
    choice = next((made for made in nearby if _is_nearest(facts, made)), None)
    layer = _layer(facts, call.outputs[0].tensor, above)
    if choice is None or layer is None:
        return None
    behind = [made for _, made in ancestry(facts, choice.inputs[0].tensor, choice.index, _MAX_CALLS)]
    read = {access.tensor for made in (choice, *behind) for access in made.inputs}
    if not any(table in read for table in tables):
        return None
    if any(_layer(facts, value, above) is not None for value in _compared(facts, behind, set(tables))):
        return None
    leaves = set[int]()
    for made in behind:
        for access in made.inputs:
            if facts.requires_grad(access.tensor, made.index - 1):
                leaves |= graph_leaves(facts, access.tensor, made.index)
    return choice, layer, leaves - set(tables) - graph_leaves(facts, call.outputs[0].tensor, call.index + 1)


def _compared(facts: TraceIndex, behind: list[Call], tables: set[int]) -> Iterator[int]:
    """Yields the values that distances from the entries of a table are of, as they were before a reshape."""
    for call in behind:
        numbers = [access.tensor for access in call.inputs]
        origins = [_origin(facts, number, call.index) for number in numbers]
        if len(numbers) > 1 and tables & set(origins):
            yield from (each for each in origins if each not in tables)


def _origin(facts: TraceIndex, number: int, before: int) -> int:
    """Returns the tensor of which another one has the values in a different shape."""
    for _ in range(_MAX_HOPS):
        made = next(iter(facts.producers(number, before)), None)
        if made is None or not made.inputs or op_name(made) not in _RESHAPING | {"t", "detach"}:
            break
        number, before = made.inputs[0].tensor, made.index
    return number


def _index(facts: TraceIndex, call: Call) -> int | None:
    """Returns the tensor that says which entries a call reads: numbers, or in a product rows of zeros and ones."""
    numbers = [access.tensor for access in call.inputs]
    if op_name(call) in _PRODUCTS:
        given = [number for number in numbers if not facts.requires_grad(number, call.index - 1)]
        return given[0] if len(given) == 1 and len(numbers) == 2 else None
    return next((number for number in numbers if facts.tensor(number).dtype.startswith("int")), None)


def _is_nearest(facts: TraceIndex, call: Call) -> bool:
    if op_name(call) in _LARGEST and call.inputs:
        made = next(iter(facts.producers(call.inputs[0].tensor, call.index)), None)
        return made is not None and op_name(made) == "neg"
    return op_name(call) in _NEAREST


def _layer(facts: TraceIndex, number: int, above: tuple[Call, ...]) -> Call | None:
    """Returns a layer with parameters that reads a tensor, or a reshaped one, in the graph of a pass."""
    numbers = {number}
    for call in sorted(above, key=lambda each: each.index):
        if not numbers & {access.tensor for access in call.inputs}:
            continue
        if op_name(call) in _RESHAPING:
            if call.inputs[0].tensor in numbers:  # and not as the other one of `view_as()`
                numbers |= {access.tensor for access in call.outputs}
        elif not is_arithmetic(call) and any(facts.is_leaf_requiring_grad(a.tensor, call.index) for a in call.inputs):
            return call
    return None
