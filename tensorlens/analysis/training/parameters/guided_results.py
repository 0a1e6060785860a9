"""Finds classifier-free guidance with an id for "no class" that training never gives, or gives to a class as well.

Guidance takes the difference of two results of one model, of which one gets the same id for each row. This id has a row
of an embedding, which learns only if training puts the id in place of some classes.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from tensorlens.analysis.code_around import statement_around
from tensorlens.analysis.lineage import ancestry
from tensorlens.analysis.literal_values import number_of
from tensorlens.analysis.naming.syntax import called_name
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.analysis.written_call import written_call
from tensorlens.records.model import Call

_FILLED = frozenset("full full_like new_full".split())
_ZEROS = frozenset("zeros zeros_like new_zeros".split())
_SAME = frozenset("to long clone detach view reshape unsqueeze squeeze expand getitem int".split())
_TAKES = frozenset("getitem index_select to long clone detach int contiguous split chunk unbind".split())
_SCALED = frozenset("mul rmul neg".split())
_ADDING = frozenset("add radd iadd".split())
_PARTS = frozenset("chunk split unbind getitem tensor_split".split())
_DRAWS = frozenset(
    "normal uniform trunc_normal xavier_uniform xavier_normal kaiming_uniform kaiming_normal orthogonal".split()
)
_DROPS = frozenset("where masked_fill setitem".split())
_MAX_ANCESTORS, _MAX_BETWEEN, _MAX_STEPS, _LEAST_DROPS = 60, 400, 8, 2
_MOST_ARGUMENTS = 2  # of an embedding without a row for padding


@dataclass(frozen=True, slots=True)
class Guidance:
    """A difference of a result with classes and one without, and the row of the embedding for the latter."""

    weight: int
    row: int
    null: Call  # makes the ids of the latter
    difference: Call
    lookup: Call  # the last one in training
    drawn: Call | None  # what draws classes that include the id; None: the row has never got a gradient


def guidance_without_training(training: MeasuredTraining) -> Iterator[Guidance]:
    """Yields these differences, one for each embedding."""
    facts = training.facts
    lookups: dict[int, list[Call]] = {}
    for call in facts.calls:
        if op_name(call) == "embedding" and len(call.inputs) == 2:
            lookups.setdefault(call.inputs[1].tensor, []).append(call)
    for weight, calls in lookups.items() if not _may_have_padding(facts) else ():  # its row stays as it is, often zeros
        row = training.row(weight)
        learned = [call for call in calls if call.mode == "grad" and call.nodes[1] > call.nodes[0]]
        if row is None or row.statistics is None or not row.is_stepped or not learned:
            continue
        if _is_written(training, weight):
            continue
        left = row.statistics.unreached_rows
        later = [call for call in calls if call.mode != "grad" and call.index > learned[0].index]
        for call in later:
            found = _null(facts, call.inputs[0].tensor, call.index)
            if found is None:
                continue
            null, place = found
            drawn = _drawn(facts, learned[-1], place) if place not in left else None
            difference = _difference(facts, call, weight) if drawn or place in left else None
            if drawn is not None and difference is not None and not _is_guidance(facts, difference):
                continue
            if difference is not None:
                yield Guidance(weight, place, null, difference, learned[-1], drawn)
                break


def _is_written(training: MeasuredTraining, weight: int) -> bool:
    """Returns whether a call other than a draw of the whole table writes to an embedding: it may give the row."""
    facts = training.facts
    made = facts.creator(weight)
    for call in training.written_after(weight, -1):
        is_whole = bool(call.writes) and facts.tensor(call.writes[0].tensor).shape == facts.tensor(weight).shape
        is_draw = op_name(call).strip("_") in _DRAWS
        if call is not made and not (is_whole and is_draw):
            return True
    return False


def _may_have_padding(facts: TraceIndex) -> bool:
    """Returns whether an embedding of the program may have a row for padding."""
    for _, tree in facts.trees():
        for node in ast.walk(tree):
            is_placed = (
                called_name(node) == "Embedding" and isinstance(node, ast.Call) and len(node.args) > _MOST_ARGUMENTS
            )
            if is_placed or (isinstance(node, ast.keyword) and node.arg == "padding_idx"):
                return True
    return False


def _null(facts: TraceIndex, ids: int, before: int) -> tuple[Call, int] | None:
    """Returns the call that makes equal ids, and the id; of ids that are put together of two parts, of one part."""
    for _ in range(_MAX_STEPS):
        made = next(iter(facts.producers(ids, before)), None)
        if made is None or made.writes:
            return None
        if op_name(made) in ("cat", "concat") and len(made.inputs) == 2:
            parts = [_null(facts, access.tensor, made.index) for access in made.inputs]
            known = [each for each in parts if each is not None]
            return known[0] if len(known) == 1 else None
        value = _filled(facts, made)
        if value is not None:
            return (made, int(value)) if value >= 0 and value == int(value) else None
        if op_name(made) not in _SAME or len(made.inputs) != 1:
            return None
        ids, before = made.inputs[0].tensor, made.index
    return None


def _filled(facts: TraceIndex, made: Call) -> float | None:
    """Returns the number that a call fills a tensor with."""
    if op_name(made) in _ZEROS:
        return 0.0
    written, span = written_call(facts, made), facts.span(made.site)
    if op_name(made) not in _FILLED or written is None or span is None:
        return None
    node = written.argument(1, "fill_value")
    return None if node is None else number_of(facts, span.file, node)


def _difference(facts: TraceIndex, lookup: Call, weight: int) -> Call | None:
    """Returns the difference of what a look-up leads to and what another one leads to, at the same place of a model."""
    for call in facts.calls_between(lookup.index, lookup.index + _MAX_BETWEEN):
        if op_name(call) not in ("sub", "lerp") or len(call.inputs) < 2:
            continue
        made = [_model_result(facts, access.tensor, call.index) for access in call.inputs[:2]]
        if made[0] is None or made[1] is None or made[0].site != made[1].site or made[0].op != made[1].op:
            continue
        if facts.trace.sites[made[0].site].span == facts.trace.sites[call.site].span:
            continue
        found = [_lookups_above(facts, each, weight) for each in made if each is not None]
        is_both = made[0].index == made[1].index and op_name(made[0]) in _PARTS
        own = [lookup.index in each for each in found]
        if (sum(own) == 1 and all(found)) or (is_both and all(own)):
            return call
    return None


def _is_guidance(facts: TraceIndex, difference: Call) -> bool:
    """Returns whether a difference is of scaled results, or is scaled and added to one of them."""
    if op_name(difference) == "lerp":
        return True
    sides = {access.tensor for access in difference.inputs}
    made = [facts.creator(each) for each in sides]
    if any(each is not None and op_name(each) in _SCALED for each in made):
        return True
    known, is_scaled = {access.tensor for access in difference.outputs}, False
    for call in facts.calls_between(difference.index + 1, difference.index + _MAX_STEPS):
        read = {access.tensor for access in call.inputs}
        if known.isdisjoint(read):
            continue
        if op_name(call) in _ADDING and sides & read:
            node = facts.node_at(call.site)
            return is_scaled or (isinstance(node, ast.Call) and any(word.arg == "alpha" for word in node.keywords))
        is_scaled |= op_name(call) in _SCALED
        known |= {access.tensor for access in call.outputs} if op_name(call) in _SCALED else set()
    return False


def _model_result(facts: TraceIndex, number: int, before: int) -> Call | None:
    """Returns the call that made a tensor, before it was multiplied by a number."""
    for _ in range(3):
        made = next(iter(facts.producers(number, before)), None)
        if made is None or op_name(made) not in _SCALED or len(made.inputs) != 1:
            return made
        number, before = made.inputs[0].tensor, made.index
    return None


def _lookups_above(facts: TraceIndex, call: Call, weight: int) -> set[int]:
    """Returns the look-ups of an embedding that led to a result, those of the same round."""
    above, since = {call.index}, call.index - _MAX_BETWEEN
    for access in call.inputs:
        found_above = ancestry(facts, access.tensor, call.index, _MAX_ANCESTORS, since)
        above |= {made.index for _, made in found_above}
    found = (facts.event(index) for index in above)
    return {
        each.index
        for each in found
        if isinstance(each, Call) and op_name(each) == "embedding" and each.inputs[-1].tensor == weight
    }


def _drawn(facts: TraceIndex, lookup: Call, null: int) -> Call | None:
    """Returns the `randint()` of classes that include an id which a line puts in place of some of them."""
    number, before, has_dropped = lookup.inputs[0].tensor, lookup.index, False
    for _ in range(_MAX_STEPS):
        made = next(iter(facts.producers(number, before)), None)
        if made is None or not made.inputs:
            return made if has_dropped and made is not None and _may_draw(facts, made, null) else None
        inputs = [access.tensor for access in made.inputs]
        if op_name(made) in _DROPS and not has_dropped:
            if _put_in(facts, made) != {null}:
                return None
            kept = [each for each in inputs if facts.tensor(each).dtype != "bool"]
            kept = [each for each in kept if _null(facts, each, made.index) is None] or kept
            has_dropped = True
            if facts.times_run(made.site, made.index)[1] < _LEAST_DROPS:
                return None  # what the data have, not an id that steps put in place of some
            number, before = kept[0], made.index
        elif op_name(made) in _TAKES:
            number, before = inputs[0], made.index
        else:
            return None
    return None


def _put_in(facts: TraceIndex, made: Call) -> set[float]:
    """Returns the numbers that a call puts in place of some ids."""
    filled = [_null(facts, access.tensor, made.index) for access in made.inputs]
    found = {float(each[1]) for each in filled if each is not None}
    written, span, node = written_call(facts, made), facts.span(made.site), facts.node_at(made.site)
    if span is None:
        return set()
    if written is not None:
        numbers = [number_of(facts, span.file, each) for each in (*written.args, *written.keywords.values())]
        return found | {each for each in numbers if each is not None}
    statement = statement_around(facts, span) if isinstance(node, ast.Subscript) else None
    value = number_of(facts, span.file, statement.value) if isinstance(statement, ast.Assign) else None
    return found if value is None else {value}


def _may_draw(facts: TraceIndex, made: Call, null: int) -> bool:
    """Returns whether `torch.randint(low, high, ...)` draws an id, by what the source gives it."""
    node, span = facts.node_at(made.site), facts.span(made.site)
    if op_name(made) != "randint" or not isinstance(node, ast.Call) or span is None:
        return False
    numbers = [number_of(facts, span.file, each) for each in node.args[:2]]
    low, high = (0.0, numbers[0]) if len(numbers) < 2 or isinstance(node.args[1], ast.Tuple | ast.List) else numbers
    return low is not None and high is not None and low <= null < high
