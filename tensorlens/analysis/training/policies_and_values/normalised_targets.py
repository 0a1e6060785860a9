"""Finds value targets that a normalised advantage is added to: the sum is no return."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tensorlens.analysis.lineage import ancestry
from tensorlens.analysis.naming.name_words import words_of
from tensorlens.analysis.trace_index import OPS_ENTERING_TORCH, TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.loss_calls import ERRORS, examined_passes, recorded_above
from tensorlens.analysis.training.policies_and_values.advantages import is_score
from tensorlens.analysis.training.value_ranges import RESHAPING
from tensorlens.records.model import Backward, Call

_KEEPING = RESHAPING | frozenset("select unbind index_select stack cat concat chunk split".split())
_SUMS = frozenset(("add", "radd", "iadd"))
_DIFFERENCES = frozenset(("sub", "isub"))
_QUOTIENTS = frozenset("div truediv itruediv idiv true_divide".split())
_PRODUCTS = frozenset(("mul", "rmul", "imul"))
_OF_DEVIATION = frozenset("add radd iadd clamp clamp_min clip maximum sqrt pow nan_to_num".split())
_DEVIATIONS = frozenset("std var std_mean var_mean".split())
_LINEAR = _KEEPING | _SUMS | _DIFFERENCES | _PRODUCTS | frozenset("rsub setitem flip".split())
_RETURNS = ("ret", "targ", "tgt", "rtg", "td")
_REWARDS = ("rew", "bonus", "intrinsic", "novelty", "surprise", "curiosity")
_MEANS = frozenset("mean std_mean var_mean nanmean".split())
_MAX_STEPS, _MAX_SCORES, _MAX_ABOVE, _MAX_NAMES = 8, 4, 2_000, 3


@dataclass(frozen=True, slots=True)
class NormalisedTarget:
    """The sum of a normalised advantage and a value, which an error compares with a prediction."""

    added: Call
    normalised: Call  # the quotient
    error: Call


def normalised_targets(facts: TraceIndex) -> Iterator[NormalisedTarget]:
    """Yields these sums if the same pass, or another one, multiplies log-probabilities by the advantage."""
    reported, passes = set[int](), list(examined_passes(facts))
    for backward in passes:
        for call in recorded_above(facts, backward):
            for number in _targets(facts, call):
                added = _maker(facts, number, call.index)
                if added is None or added.site in reported or op_name(added) not in _SUMS or len(added.inputs) != 2:
                    continue
                found = _advantage(facts, added) if _says(facts, added, _RETURNS, call) else None
                if found is not None and any(_weighs(facts, each, found) for each in passes):
                    reported.add(added.site)
                    yield NormalisedTarget(added, found, call)


def _advantage(facts: TraceIndex, added: Call) -> Call | None:
    """Returns the call that normalises one summand, if that is an advantage over the other one: it was computed from
    it, or both come from plain numbers and its name says so. Rewards, which may be normalised, are neither."""
    for one, other in (added.inputs, added.inputs[::-1]):
        quotient, value = (_normalised(facts, one.tensor, added.index), _maker(facts, other.tensor, added.index))
        if quotient is None or value is None or op_name(value) in _PRODUCTS:
            continue
        if _says(facts, quotient, _REWARDS, added):
            continue
        if _is_less(facts, quotient.inputs[0].tensor, quotient.index, value):
            return quotient
        above = list(ancestry(facts, quotient.inputs[0].tensor, quotient.index, _MAX_ABOVE))
        is_plain = value.op in OPS_ENTERING_TORCH and any(made.op in OPS_ENTERING_TORCH for _, made in above)
        names = [facts.name(number, quotient.index) for number, _ in above[:_MAX_NAMES]]
        if is_plain and any(word.startswith("adv") for name in names for word in words_of(name)):
            return quotient
    return None


def _is_less(facts: TraceIndex, number: int, before: int, value: Call) -> bool:
    """Returns whether a tensor is a sum of differences from which a value is subtracted, as an advantage is: the
    absolute value of a difference, as a bonus, is none."""
    waiting, seen = [(number, before)], set[int]()
    for at, limit in waiting:
        made = next(iter(facts.producers(at, limit)), None)
        if made is None or made.index in seen or len(seen) > _MAX_ABOVE or op_name(made) not in _LINEAR:
            continue
        seen.add(made.index)
        if op_name(made) in _DIFFERENCES and len(made.inputs) == 2:
            taken = _maker(facts, made.inputs[1].tensor, made.index)
            if taken is not None and taken.index == value.index:
                return True
        waiting += [(access.tensor, made.index) for access in made.inputs]
    return False


def _says(facts: TraceIndex, made: Call, words: tuple[str, ...], later: Call) -> bool:
    """Returns whether a name of what a call makes or takes says one of some words."""
    numbers = {access.tensor for access in (*made.outputs, *(() if words is _RETURNS else made.inputs))}
    names = {facts.name(number, at) for number in numbers for at in (made.index, later.index)}
    return any(word.startswith(words) for name in names for word in words_of(name))


def _targets(facts: TraceIndex, call: Call) -> list[int]:
    """Returns what an error, or a difference, compares with a prediction: it has no graph."""
    if (op_name(call) not in ERRORS and op_name(call) not in _DIFFERENCES) or len(call.inputs) != 2:
        return []
    numbers = [access.tensor for access in call.inputs]
    constants = [number for number in numbers if not facts.requires_grad(number, call.index - 1)]
    return constants if len(constants) == 1 else []


def _maker(facts: TraceIndex, number: int, before: int) -> Call | None:
    """Returns the call that made the values of a tensor, also those that it has taken a part of."""
    made = next(iter(facts.producers(number, before)), None)
    for _ in range(_MAX_STEPS):
        if made is None or op_name(made) not in _KEEPING or not made.inputs or made.writes:
            break
        made = next(iter(facts.producers(made.inputs[0].tensor, made.index)), None)
    return made


def _source(facts: TraceIndex, number: int, before: int) -> tuple[int, int | None]:
    """Returns a tensor, or the one that it is a reshaped form of, with the call that made it."""
    made = next(iter(facts.producers(number, before)), None)
    for _ in range(_MAX_STEPS):
        if made is None or op_name(made) not in RESHAPING or op_name(made) == "getitem" or not made.inputs:
            break
        number, before = made.inputs[0].tensor, made.index
        made = next(iter(facts.producers(number, before)), None)
    return number, None if made is None else made.index


def _normalised(facts: TraceIndex, number: int, before: int) -> Call | None:
    """Returns the quotient if a tensor is a value minus its own mean, divided by its own deviation."""
    quotient = _maker(facts, number, before)
    if quotient is None or op_name(quotient) not in _QUOTIENTS or len(quotient.inputs) != 2:
        return None
    centred, spread = (_maker(facts, access.tensor, quotient.index) for access in quotient.inputs)
    if quotient.writes and quotient.inputs[0].tensor in {write.tensor for write in quotient.writes}:
        centred = _maker(facts, quotient.inputs[0].tensor, quotient.index)
    if centred is None or op_name(centred) not in _DIFFERENCES or len(centred.inputs) != 2:
        return None
    mean = _maker(facts, centred.inputs[1].tensor, centred.index)
    for _ in range(_MAX_STEPS):
        if spread is None or op_name(spread) not in _OF_DEVIATION or not spread.inputs:
            break
        spread = _maker(facts, spread.inputs[0].tensor, spread.index)
    if mean is None or spread is None or op_name(mean) not in _MEANS or op_name(spread) not in _DEVIATIONS:
        return None
    value = _source(facts, centred.inputs[0].tensor, centred.index)
    averaged = _source(facts, mean.inputs[0].tensor, mean.index)
    measured = _source(facts, spread.inputs[0].tensor, spread.index)
    is_same = averaged == value and measured[0] in (value[0], *(access.tensor for access in centred.outputs))
    return quotient if is_same else None


def _weighs(facts: TraceIndex, backward: Backward, quotient: Call) -> bool:
    """Returns whether a pass multiplies log-probabilities, or a ratio of these, by the normalised values."""
    looks = 0
    for call in recorded_above(facts, backward):
        if op_name(call) not in _PRODUCTS or len(call.inputs) != 2 or looks >= _MAX_SCORES:
            continue
        for one, other in (call.inputs, call.inputs[::-1]):
            made = _maker(facts, one.tensor, call.index)
            if made is not None and op_name(made) == "neg":
                made = _maker(facts, made.inputs[0].tensor, made.index)
            if made is quotient or (made is not None and made.index == quotient.index):
                looks += 1
                if is_score(facts, other.tensor, call.index):
                    return True
    return False
