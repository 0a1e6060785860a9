"""Names lines that write fractions to a tensor of whole numbers, as a running mean of labels that are `int64`."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from math import prod

from tensorlens.analysis.code_around import statement_around
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.analysis.training.value_ranges import ADDING, RESHAPING, SHAPING, is_zero_or_one
from tensorlens.analysis.written_numbers import written_number
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.diagnostics.shared.wording import as_written, named
from tensorlens.records.model import Call
from tensorlens.records.report import StandingOut

_WRITES = frozenset(("copy", "setitem", "index_copy", "index_put", "scatter", "masked_scatter"))
_FRACTIONS = frozenset(("softmax", "sigmoid"))
_MEANS, _QUOTIENTS = frozenset(("mean", "nanmean")), frozenset(("div", "truediv", "divide"))
_REPEATING = frozenset("expand expand_as repeat".split())
_LIMITS = frozenset("clamp clamp_min clip".split())
_KEEPING = ADDING | SHAPING | frozenset("sub rsub mul rmul lerp detach cpu transpose permute t stack gather".split())
_SUMS = frozenset("add radd iadd sub rsub".split())
_MAX_CALLS = 16


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    facts = training.facts
    lines: dict[int, list[Call]] = defaultdict(list)
    for call in facts.calls:
        if op_name(call) in _WRITES and call.writes and not call.within and _is_whole(facts, call.writes[0].tensor):
            lines[call.site].append(call)
    for site, calls in lines.items():
        call = calls[-1]
        source = _source(facts, call)
        if source is not None and not facts.trace.sites[site].through:
            target = call.writes[0].tensor
            made = facts.creator(target)
            yield stands_out(
                f"{as_written(facts, call)} writes {source} to {named(facts, target, call.index)}, a tensor of "
                f"{facts.tensor(target).dtype}: it keeps no fractions",
                facts.label("modified_here", site, "written here", call.index),
                None if made is None else facts.label("value_made_here", made.site, "made here", made.index),
            )


def _is_whole(facts: TraceIndex, number: int) -> bool:
    return facts.tensor(number).dtype.startswith("int")  # `uint8` has pictures, of numbers up to 255


def _source(facts: TraceIndex, call: Call) -> str | None:
    """Returns what a call writes, in words, if it has fractions: a number of the source, or values that a call such as
    a softmax or a division has made."""
    span = facts.span(call.site)
    statement = None if span is None else statement_around(facts, span)
    is_set = op_name(call) == "setitem" and isinstance(statement, ast.Assign)
    written = written_number(facts, statement.value) if is_set else None  # type: ignore[union-attr]
    if written is not None:
        return None if written % 1 == 0 else f"{written:g}"
    for number in (access.tensor for access in call.inputs[1:]):
        dtype = facts.tensor(number).dtype
        if "float" in dtype and _has_fractions(facts, number, call.index, call.writes[0].tensor):
            return f"values of {dtype}"
    return None


def _has_fractions(facts: TraceIndex, number: int, before: int, target: int) -> bool:
    """Returns whether a tensor is probabilities, or a mean of some and of the target itself."""
    waiting, seen = [(number, before)], set[int]()
    found = scaled = mixed = False
    for each, limit in waiting:
        mixed |= each == target
        call = next(iter(facts.producers(each, limit)), None)
        if call is None or call.index in seen or len(seen) > _MAX_CALLS or each == target:
            continue
        seen.add(call.index)
        found |= op_name(call) in _FRACTIONS or _is_share(facts, call)
        if op_name(call) in _KEEPING:
            is_sum = op_name(call) in _SUMS
            if is_sum and len(call.inputs) == 1:
                return False  # a number is added, as a half to round
            scaled |= op_name(call) in ("mul", "rmul")
            waiting += [(access.tensor, call.index) for access in call.inputs]
    return found and (mixed or not scaled)


def _is_share(facts: TraceIndex, call: Call) -> bool:
    """Returns whether a call computes the mean of zeros and ones, or divides a tensor by its own sum."""
    if not call.inputs or not call.outputs:
        return False
    number = call.inputs[0].tensor
    if op_name(call) in _MEANS:
        counts = [prod(facts.tensor(each.tensor).shape) for each in (call.inputs[0], call.outputs[0])]
        is_same = any(op_name(each) in _REPEATING for each in _reshapes(facts, number, call.index, RESHAPING))
        return counts[0] > counts[1] and not is_same and is_zero_or_one(facts, number, call.index)
    if op_name(call) not in _QUOTIENTS or len(call.inputs) != 2:
        return False
    made = list(_reshapes(facts, call.inputs[1].tensor, call.index, RESHAPING | _LIMITS))
    return bool(made) and op_name(made[-1]) == "sum" and made[-1].inputs[0].tensor == number


def _reshapes(facts: TraceIndex, number: int, before: int, known: frozenset[str]) -> Iterator[Call]:
    """Yields the calls that a tensor comes through, the latest first, up to one of another operation."""
    for _ in range(_MAX_CALLS):
        call = next(iter(facts.producers(number, before)), None)
        if call is None or not call.inputs:
            return
        yield call
        if op_name(call) not in known:
            return
        number, before = call.inputs[0].tensor, call.index
