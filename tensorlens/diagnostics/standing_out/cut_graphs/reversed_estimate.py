"""Names straight-through estimates with their parts exchanged: `q + (z - q).detach()` has the value of `z`."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.lineage import ancestry
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.analysis.training.picked_entries import is_picked_by
from tensorlens.analysis.training.value_ranges import RESHAPING
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.diagnostics.shared.wording import as_written, named
from tensorlens.records.model import Call
from tensorlens.records.report import StandingOut

_CUTS = frozenset(("Tensor.detach", "torch.detach", "Tensor.data.__get__"))
_ROUNDING = frozenset("round sign floor ceil trunc heaviside argmax eq ne lt gt le ge bucketize".split())
_SCALING = frozenset("where mul rmul add radd sub rsub div truediv one_hot scatter".split())
_SAME = frozenset("float double to type_as contiguous clone".split())
_MAX_CALLS = 24


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    facts, seen = training.facts, set[int]()
    sums = [(call, *pair) for call in facts.calls if (pair := _sum(facts, call)) is not None]
    right = {(kept, other) for _, kept, other, _ in sums}
    for call, picked, source, difference in sums:
        is_both = (source, picked) in right  # the loss uses each of the two ways
        if is_both or call.site in seen:
            continue
        is_picked = is_picked_by(facts, picked, source, call.index)
        if is_picked or (call.mode == "grad" and _is_rounded(facts, picked, source, call.index)):
            seen.add(call.site)
            code, value = as_written(facts, call), named(facts, source, difference.index)
            gradient = named(facts, picked, call.index)
            yield stands_out(
                f"{code} has the value of {value} and the gradient of {gradient}, which is "
                f"{'picked by' if is_picked else 'rounded from'} {value}: a "
                f"straight-through estimate has the value of {gradient} and the gradient of {value}",
                facts.label("value_made_here", call.site, f"the value of {value}", call.index),
                facts.label("graph_cut_here", difference.site, "detached", difference.index),
            )


def _sum(facts: TraceIndex, call: Call) -> tuple[int, int, Call] | None:
    """Returns (kept, other, difference) of `kept + (other - kept).detach()`, or of another way to write it."""
    name = op_name(call)
    if name not in ("add", "radd", "sub") or len(call.inputs) != 2 or call.within:
        return None
    numbers = [_before_copies(facts, access.tensor, call.index) for access in call.inputs]
    for kept, cut in [numbers] if name == "sub" else [numbers, numbers[::-1]]:
        difference = _difference(facts, cut, call.index)
        if difference is None or (difference[0].mode != "grad" and not _has_graph(facts, call)):
            continue
        made, (other, less) = difference
        other, less = (less, other) if name == "sub" else (other, less)
        if less == kept and other != kept:
            return kept, other, made
    return None


def _difference(facts: TraceIndex, number: int, before: int) -> tuple[Call, tuple[int, int]] | None:
    """Returns the call that subtracted one tensor from another, and these, if both or the result are detached, or if no
    graph is recorded there."""
    uncut = _uncut(facts, number, before)
    source = number if uncut is None else _before_copies(facts, uncut, before)
    made = next(iter(facts.producers(source, before)), None)
    if made is None or op_name(made) != "sub" or len(made.inputs) != 2:
        return None
    numbers = [access.tensor for access in made.inputs]
    cut = [_uncut(facts, number, made.index) for number in numbers]
    if uncut is None and made.mode == "grad" and None in cut:
        return None
    first, second = (
        _before_copies(facts, number if each is None else each, made.index)
        for number, each in zip(numbers, cut, strict=True)
    )
    return made, (first, second)


def _has_graph(facts: TraceIndex, call: Call) -> bool:
    return bool(call.outputs) and facts.requires_grad(call.outputs[0].tensor, call.index)


def _before_copies(facts: TraceIndex, number: int, before: int) -> int:
    """Returns the tensor that a tensor is a copy of, as in another type."""
    for _ in range(_MAX_CALLS):
        made = next(iter(facts.producers(number, before)), None)
        if made is None or op_name(made) not in _SAME or not made.inputs or made.mode != "grad":
            break
        number, before = made.inputs[0].tensor, made.index
    return number


def _uncut(facts: TraceIndex, number: int, before: int) -> int | None:
    """Returns the tensor that a tensor is the detached one of."""
    made = next(iter(facts.producers(number, before)), None)
    return made.inputs[0].tensor if made is not None and made.op in _CUTS and made.inputs else None


def _is_rounded(facts: TraceIndex, picked: int, source: int, before: int) -> bool:
    """Returns whether a value is computed from another one, which has a graph, by rounding or comparing alone."""
    if not facts.requires_grad(source, before - 1):
        return False
    waiting, is_found = [(picked, before)], False
    for number, limit in waiting:
        call = next(iter(facts.producers(number, limit)), None)
        if number == source or len(waiting) > _MAX_CALLS:
            return False
        if call is None:
            continue
        if op_name(call) in _ROUNDING:
            above = [made for _, made in ancestry(facts, call.inputs[0].tensor, call.index, _MAX_CALLS)]
            is_found |= any(access.tensor == source for made in (call, *above) for access in made.inputs)
        elif op_name(call) in RESHAPING | _SCALING:
            waiting += [(access.tensor, call.index) for access in call.inputs]
        elif call.inputs and facts.requires_grad(number, limit - 1):
            return False  # a scale without a graph, as `w.detach().abs().max()`, passes no gradient on
    return is_found
