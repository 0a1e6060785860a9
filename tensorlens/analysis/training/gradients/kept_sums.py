"""Finds rows of gradients, one for each pass of a line, where the passes add up: a row is a sum with those before.

So it is with the gradient of each sample, if the gradients are cleared once before the loop over the samples.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from tensorlens.analysis.code_around import function_around
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.gradients.held_gradients import HeldGradient, adds_up, called_op, held_by
from tensorlens.analysis.training.timeline import GRAD_READ, GRAD_SET, Moment, Training
from tensorlens.records.model import Backward, Call
from tensorlens.records.source import line_at

_JOINING = frozenset("cat concat stack vstack hstack row_stack column_stack".split())
_MEASURING = frozenset("norm vector_norm linalg_norm sum mean square pow abs sqrt max amax add radd dot".split())
_SELECTING = frozenset("getitem select narrow unbind split chunk index_select".split())
_SAME = _SELECTING | frozenset("detach view reshape flatten clone unsqueeze squeeze t T mT to double float cpu".split())
_LEAVING = frozenset("numpy tolist diff".split())  # what follows may take differences
_DIFFERENCES = frozenset("sub isub rsub dist cdist".split())
_SHIFTING = frozenset(("roll", "pad"))
_SCALING = frozenset("div mul itruediv imul true_divide rdiv rtruediv rmul".split())
_COUNTS = frozenset("arange linspace cumsum range".split())  # a row divided by its place is a mean so far
_CLEARING = frozenset(("zero", "foreach_zero", "requires_grad", "detach"))
_MEANT = re.compile(
    r"cum|partial|prefix|running|so_far|sofar|until|total|accum|sums?(?![a-z(])|progress", re.IGNORECASE
)
_MIN_ROWS = 3


@dataclass(frozen=True, slots=True)
class KeptSum:
    """A call that puts gradients of several passes together, each of which but the first is a sum with those before."""

    joined: Call
    read: Call  # copies or measures the gradient after the last pass
    filled: Backward
    rows: int
    leaves: tuple[int, ...]


@dataclass(slots=True)
class _Search:
    training: Training
    held: dict[int, HeldGradient] = field(default_factory=dict)
    leaves: dict[int, set[int]] = field(default_factory=dict)  # of each tensor that holds gradients
    joins: dict[int, int] = field(default_factory=dict)  # tensor: the index of the call that joined the rows
    selected: set[int] = field(default_factory=set)
    meant: set[int] = field(default_factory=set)  # joins whose rows are compared with each other
    apart: set[int] = field(default_factory=set)  # leaves of which one reading is subtracted from another
    found: dict[int, KeptSum] = field(default_factory=dict)  # by the index of the join


def kept_sums(training: Training) -> Iterator[KeptSum]:
    """Yields each line that joins such rows once."""
    search = _Search(training)
    if training.gradient_read:
        for call in training.facts.calls:
            _look(search, call)
    sites = set[int]()
    dropped = {search.found[index].joined.site for index in search.meant if index in search.found}
    for found in search.found.values():
        site = found.joined.site
        if site not in sites | dropped and not search.apart & set(found.leaves):
            sites.add(site)
            yield found


def _look(search: _Search, call: Call) -> None:
    given, name, facts = [access.tensor for access in call.inputs], called_op(call), search.training.facts
    if call.op == GRAD_READ and call.outputs and not call.within:
        search.held[call.outputs[0].tensor] = HeldGradient(given[0], call.outputs[0].tensor, None)
        search.leaves[call.outputs[0].tensor] = {given[0]}
        return
    if any(number in search.joins for number in given):
        _follow(search, call, given, name)
    held = [search.held[number] for number in given if number in search.held]
    if not held:
        return
    if name in _LEAVING or (len(held) > 1 and name in _DIFFERENCES):
        search.apart |= {each.leaf for each in held}
    if call.outputs and not _joins(search, call, given, name):
        one = held_by(facts, call, search.held)
        if one is None and name in _MEASURING and len(held) == len(given):
            one = HeldGradient(held[0].leaf, held[0].gradient, call.index if held[0].at is None else held[0].at)
        if one is not None:
            search.held[call.outputs[0].tensor] = one
            search.leaves[call.outputs[0].tensor] = set[int]().union(*(search.leaves[number] for number in given))


# --- the rows -------------------------------------------------------------------------------------------------------


def _joins(search: _Search, call: Call, given: Sequence[int], name: str) -> bool:
    """Notes a call that joins readings of the same gradient. Returns whether it does."""
    rows = [search.held[number] for number in given if number in search.held]
    places = [each.at for each in rows if each.at is not None]
    if name not in _JOINING or len(rows) < _MIN_ROWS or not len(given) == len(rows) == len(places):
        return False
    if len({each.leaf for each in rows}) > 1 or places != sorted(set(places)):
        return False
    training, one = search.training, rows[-1]
    moments = training.moments.get(one.leaf, [])
    adds = (adds_up(training.facts, moments, one.gradient, *pair) for pair in pairwise(places))
    passes = _passes(moments, places) if all(adds) else []
    reads = [each for place in places if (each := training.facts.call(place)) is not None]
    if len({each.site for each in passes}) != 1 or len({each.site for each in reads}) != 1:
        return True
    is_wanted = _is_read_elsewhere(training, one.leaf, passes, moments) or _is_meant(training.facts, call, reads[-1])
    if _is_unused(moments, places[-1]) and not is_wanted:
        leaves = tuple(each for each in sorted(search.leaves[given[-1]]) if _is_filled(training, each, places))
        search.found[call.index] = KeptSum(call, reads[-1], passes[-1], len(rows), leaves)
        search.joins[call.outputs[0].tensor] = call.index
    return True


def _is_filled(training: Training, leaf: int, places: Sequence[int]) -> bool:
    """Returns whether passes, and nothing else, change the gradient of a leaf between one reading and the next."""
    indices = [moment.index for moment in training.moments.get(leaf, ())]
    kinds = [moment.kind for moment in training.moments.get(leaf, ())]
    parts = (kinds[bisect_left(indices, one) : bisect_left(indices, other)] for one, other in pairwise(places))
    return all(set(part) == {"fill"} for part in parts)


def _passes(moments: Sequence[Moment], places: Sequence[int]) -> list[Backward]:
    """Returns the passes before the last reading, from the one before the first reading on."""
    first, last = (bisect_left(moments, place, key=lambda moment: moment.index) for place in (places[0], places[-1]))
    return [each.event for each in moments[max(first - 1, 0) : last] if isinstance(each.event, Backward)]


def _is_unused(moments: Sequence[Moment], last: int) -> bool:
    """Returns whether the gradient is cleared or replaced after the last reading, before a pass or a step."""
    place = bisect_right(moments, last, key=lambda moment: moment.index)
    later = moments[place] if place < len(moments) else None
    is_set = later is not None and isinstance(later.event, Call) and later.event.op == GRAD_SET
    return later is None or later.kind == "clear" or is_set


def _is_read_elsewhere(training: Training, leaf: int, passes: Sequence[Backward], moments: Sequence[Moment]) -> bool:
    """Returns whether another line uses the sum of all passes, and not those before: the sum itself is wanted."""
    facts = training.facts
    if len(passes) < 2:
        return False
    cleared = next((each.index for each in moments if each.index > passes[-1].index), None)
    ends = {} if cleared is None else {"last": cleared}
    usual = _users(training, leaf, facts.calls_between(passes[-2].index, passes[-1].started))
    return bool(_users(training, leaf, facts.calls_between(passes[-1].index, **ends)) - usual)


def _users(training: Training, leaf: int, calls: Iterator[Call]) -> set[int]:
    """Returns the lines that compute with the gradient of a leaf, but to clear it."""
    owners = training.gradient_of
    return {
        call.site
        for call in calls
        if call.op not in (GRAD_READ, GRAD_SET)
        and called_op(call).strip("_") not in _CLEARING
        and any(owners.get(access.tensor) == leaf for access in call.inputs)
    }


def _is_meant(facts: TraceIndex, call: Call, read: Call) -> bool:
    """Returns whether a word in the lines that read and join the gradients, or of their functions, is one for sums so
    far."""
    for span in (facts.span(each.site) for each in (call, read)):
        if span is None:
            return True
        function = function_around(facts, span.file, span.line)
        name = "" if function is None else function.name
        if _MEANT.search(f"{line_at(facts.trace.sources[span.file], span.line)} {name}"):
            return True
    return False


# --- what follows ---------------------------------------------------------------------------------------------------


def _follow(search: _Search, call: Call, given: Sequence[int], name: str) -> None:
    """Follows the joined rows. Rows that are compared with each other, or counted, may be sums on purpose."""
    joined = [number for number in given if number in search.joins]
    origins = {search.joins[number] for number in joined}
    others = [number for number in given if number not in search.joins]
    is_compared = len(joined) > 1 and any(number in search.selected for number in joined)
    is_shifted = name in _JOINING or name in _SHIFTING
    if name in _LEAVING or is_compared or is_shifted or any(_is_count(search, n, call) for n in others):
        search.meant |= origins
    elif name in _SAME and len(given) == 1:
        for access in call.outputs:
            search.joins[access.tensor] = search.joins[joined[0]]
            if name in _SELECTING or joined[0] in search.selected:
                search.selected.add(access.tensor)


def _is_count(search: _Search, number: int, call: Call) -> bool:
    """Returns whether a tensor counts the rows, as `torch.arange(1, n + 1)[:, None]` does, or divides each by a number
    of its own."""
    facts, before = search.training.facts, call.index
    if called_op(call) in _SCALING and not facts.requires_grad(number, before) and len(facts.tensor(number).shape):
        return True
    for _ in range(4):
        made = next(iter(facts.producers(number, before)), None)
        if made is None or called_op(made) in _COUNTS:
            return made is not None
        if len(made.inputs) != 1:
            return False
        number, before = made.inputs[0].tensor, made.index
    return False
