"""Finds products of parameters with a mask that new initial values overwrite before anything reads them."""

from __future__ import annotations

import ast
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from tensorlens.analysis.naming.syntax import last_name
from tensorlens.analysis.plain_values import takes_shape_only
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.measured import MeasuredTraining, ParameterRow
from tensorlens.analysis.training.parameters.lost_values import uses_of
from tensorlens.records.model import Call

_PRODUCTS = frozenset(("mul", "imul", "masked_fill"))
_MULTIPLYING = frozenset(("mul", "rmul", "imul", "where", "masked_fill"))

_CONSTRUCTORS = ("__init__", "reset_parameters")
_MOST_CALLS = 30  # of one line
_NEW = frozenset(("zero", "fill", "normal", "uniform", "trunc_normal"))
_READING_NOTHING = frozenset(("register_hook", "register_post_accumulate_grad_hook", "requires_grad"))


@dataclass(frozen=True, slots=True)
class LostProducts:
    """A line that multiplies parameters by tensors in place, and the first line that overwrites the results."""

    product: Call
    write: Call
    rows: tuple[ParameterRow, ...]
    is_scaled: bool  # calls between the two read a result, to change it further


def lost_products(training: MeasuredTraining) -> Iterator[LostProducts]:
    """Yields these lines if all results of a line are overwritten, and nothing multiplies the parameters so again."""
    products = _products(training)
    uses = uses_of(training, set(products)) if products else {}
    lost: dict[int, list[tuple[ParameterRow, Call, tuple[Call, bool] | None]]] = defaultdict(list)
    for number, calls in products.items():
        row = training.row(number)
        assert row is not None
        for call in calls:
            lost[call.site].append((row, call, None if len(calls) > 1 else _overwritten(training, uses[number], call)))
    for found in lost.values():
        writes = [write for _, _, write in found if write is not None]
        if len(writes) == len(found):
            rows = tuple(row for row, _, _ in found)
            yield LostProducts(found[0][1], writes[0][0], rows, any(is_scaled for _, is_scaled in writes))


def _products(training: MeasuredTraining) -> dict[int, list[Call]]:
    """Maps trained parameters to the calls of the program's own lines that multiply them by a tensor in place."""
    facts = training.facts
    memory = {
        storage: row.tensor for row in training.rows if row.is_stepped for storage in facts.storages_of(row.tensor)
    }
    found: dict[int, list[Call]] = defaultdict(list)
    for call in facts.calls:
        if op_name(call) not in _PRODUCTS or len(call.writes) != 1 or len(call.inputs) != 2 or call.within:
            continue
        storage = facts.storage_of(call.writes[0].tensor, call.index)
        number = None if storage is None else memory.get(storage)
        is_own = not facts.trace.sites[call.site].through
        if number is not None and is_own and facts.tensor(call.inputs[1].tensor).shape:
            found[number].append(call)
    return found


def _overwritten(training: MeasuredTraining, uses: list[int], product: Call) -> tuple[Call, bool] | None:
    """Returns the call that gives all of a parameter new values before anything reads a product, and whether calls
    read it only to change it further."""
    facts = training.facts
    number = product.writes[0].tensor
    used = (facts.call(index) for index in uses[bisect_right(uses, product.index) :])
    later = [call for call in used if call is not None and op_name(call) not in _READING_NOTHING]
    place = next((n for n, call in enumerate(later) if _is_new(training, call, number)), None)
    if place is None or later[place].site == product.site:
        return None
    write, calls = later[place], later[place + 1 :]
    is_scaled = _only_changes(facts, later[:place], write, facts.storages_of(number))
    if is_scaled is None:
        return None
    if facts.trace.sites[write.site].function.endswith(_CONSTRUCTORS):
        return None  # a class may replace what the one that it is derived from has made
    names = [facts.trace.sites[call.site].function.rpartition(".")[2] for call in (product, write)]
    if names[0] == names[1] and product.site != write.site and not facts.same_line(product.site, write.site):
        return None  # nor is a method of one that calls that of the other
    products = (call for call in calls if op_name(call) in _MULTIPLYING)
    return None if any(len(call.inputs) > 1 for call in products) else (write, is_scaled)


def _only_changes(facts: TraceIndex, calls: list[Call], write: Call, own: set[int]) -> bool | None:
    """Returns whether calls that use a parameter compute a factor from it, to change it further in place; None if one
    of them, or a call that follows, may use its values otherwise."""
    made, read = set[int](), set[int]()
    indices = {call.index for call in calls}
    for call in facts.calls_between(calls[0].index, write.index - 1) if calls else ():
        is_next = not made.isdisjoint(access.tensor for access in call.inputs)
        read.update(access.tensor for access in call.inputs)
        if not is_next and (call.index not in indices or facts.same_line(call.site, write.site)):
            continue
        written = {facts.storage_of(each.tensor, call.index) for each in call.writes}
        if not written and not any(facts.storage_of(each.tensor, call.index) in own for each in call.outputs):
            made.update(access.tensor for access in call.outputs)
        elif not written or not written <= own or op_name(call) not in _MULTIPLYING:
            return None
    after = facts.calls_between(write.index) if made else ()
    is_kept = any(access.tensor in made for call in after for access in call.inputs)
    return None if is_kept or made - read else bool(made)


def _is_new(training: MeasuredTraining, write: Call, number: int) -> bool:
    """Returns whether a call gives each element of a parameter a new value that depends on no tensor from before the
    statement."""
    facts = training.facts
    if op_name(write) == "copy" and len(write.inputs) == 2:
        if not _is_drawn(facts, write):
            return False
    elif not write.op.startswith("nn.init.") and op_name(write) not in _NEW:
        return False
    return len(write.writes) == 1 and facts.tensor(write.writes[0].tensor).shape == facts.tensor(number).shape


def _is_drawn(facts: TraceIndex, copy: Call) -> bool:
    """Returns whether the line of a copy has computed it of new random numbers, as `nn.init.orthogonal_()` does."""
    node = facts.node_at(copy.site)
    if not isinstance(node, ast.Call) or not last_name(node.func).endswith("_"):
        return False
    waiting, draws = [(copy.inputs[1].tensor, copy.index)], 0
    for number, before in waiting:
        made = next(iter(facts.producers(number, before)), None)
        if made is None or made.site != copy.site or len(waiting) > _MOST_CALLS:
            return False
        draws += op_name(made) in _NEW
        if not takes_shape_only(made):
            waiting += [(access.tensor, made.index) for access in made.inputs]
    return draws > 0
