"""Finds products of parameters with a mask that new initial values overwrite before anything reads them."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.lost_values import uses_of
from tensorlens.analysis.training.measured import MeasuredTraining, ParameterRow
from tensorlens.records.model import Call

_PRODUCTS = frozenset(("mul", "imul", "masked_fill"))
_MULTIPLYING = frozenset(("mul", "rmul", "imul", "where", "masked_fill"))

_CONSTRUCTORS = ("__init__", "reset_parameters")
_NEW = frozenset(("zero", "fill", "normal", "uniform", "trunc_normal"))
_READING_NOTHING = frozenset(("register_hook", "register_post_accumulate_grad_hook", "requires_grad"))


@dataclass(frozen=True, slots=True)
class LostProducts:
    """A line that multiplies parameters by tensors in place, and the first line that overwrites the results."""

    product: Call
    write: Call
    rows: tuple[ParameterRow, ...]


def lost_products(training: MeasuredTraining) -> Iterator[LostProducts]:
    """Yields these lines if all results of a line are overwritten, and nothing multiplies the parameters so again."""
    products = _products(training)
    uses = uses_of(training, set(products)) if products else {}
    lost: dict[int, list[tuple[ParameterRow, Call, Call | None]]] = defaultdict(list)
    for number, calls in products.items():
        row = training.row(number)
        assert row is not None
        for call in calls:
            lost[call.site].append((row, call, None if len(calls) > 1 else _overwritten(training, uses[number], call)))
    for found in lost.values():
        writes = [write for _, _, write in found if write is not None]
        if len(writes) == len(found):
            yield LostProducts(found[0][1], writes[0], tuple(row for row, _, _ in found))


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


def _overwritten(training: MeasuredTraining, uses: list[int], product: Call) -> Call | None:
    """Returns the call that gives all of a parameter new values before anything reads a product."""
    facts = training.facts
    later = (facts.call(index) for index in uses[bisect_right(uses, product.index) :])
    calls = (call for call in later if call is not None and op_name(call) not in _READING_NOTHING)
    write = next(calls, None)
    if write is None or write.site == product.site or not _is_new(training, write, product.writes[0].tensor):
        return None
    if facts.trace.sites[write.site].function.endswith(_CONSTRUCTORS):
        return None  # a class may replace what the one that it is derived from has made
    names = [facts.trace.sites[call.site].function.rpartition(".")[2] for call in (product, write)]
    if names[0] == names[1] and product.site != write.site and not facts.same_line(product.site, write.site):
        return None  # nor is a method of one that calls that of the other
    products = (call for call in calls if op_name(call) in _MULTIPLYING)
    return None if any(len(call.inputs) > 1 for call in products) else write


def _is_new(training: MeasuredTraining, write: Call, number: int) -> bool:
    """Returns whether a call gives each element of a parameter a new value that depends on no tensor."""
    facts = training.facts
    if not write.op.startswith("nn.init.") and op_name(write) not in _NEW:
        return False
    return len(write.writes) == 1 and facts.tensor(write.writes[0].tensor).shape == facts.tensor(number).shape
