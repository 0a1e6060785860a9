"""Lists the calls that made the value of a tensor, and follows them so that a search meets each call once.

A tensor that a loop writes in place has as many producers as the loop has rounds. Nothing here copies that list, and a
search which asks for them once a round does not go through them again.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import overload

from tensorlens.analysis.states import StateHistory
from tensorlens.records.model import Call, Tensor

_INDEX = attrgetter("index")


class EarlierCalls(Sequence[Call]):
    """The first `count` of a list of calls, the latest first."""

    __slots__ = ("_calls", "_count")

    def __init__(self, calls: list[Call], count: int) -> None:
        self._calls = calls
        self._count = count

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, place: int) -> Call: ...
    @overload
    def __getitem__(self, place: slice) -> list[Call]: ...
    def __getitem__(self, place: int | slice) -> Call | list[Call]:
        if isinstance(place, slice):
            return [self._calls[self._count - 1 - at] for at in range(*place.indices(self._count))]
        return self._calls[self._count - 1 - range(self._count)[place]]

    def __iter__(self) -> Iterator[Call]:
        calls = self._calls
        return (calls[at] for at in range(self._count - 1, -1, -1))


@dataclass(slots=True)
class _Made:
    """The calls that made the value of one tensor, in order."""

    calls: list[Call] = field(default_factory=list)
    recorded: list[int] | None = None  # the places of the calls that made nodes
    without_history: list[int] | None = None  # the places of the calls after which it did not require grad


class Producers:
    """Lists for each tensor the call that created it, and those that wrote to it or changed its autograd state."""

    def __init__(self, tensors: Sequence[Tensor], states: StateHistory, calls: Sequence[Call]) -> None:
        self._tensors = tensors
        self._states = states
        self._made: dict[int, _Made] = defaultdict(_Made)
        for call in calls:
            self._add(call)

    def _add(self, call: Call) -> None:
        outputs, states = call.outputs, call.states
        if not call.writes:
            if len(outputs) == len(states) == 1 and outputs[0].tensor == states[0].tensor:  # nearly every call
                returned: Iterable[int] = (outputs[0].tensor,)
            else:
                returned = _returned(call)
            for number in returned:
                if self._tensors[number].created_by == call.index or self._changed(number, call):
                    self._made[number].calls.append(call)
            return
        written = {write.tensor for write in call.writes}
        for number in _returned(call) | written:
            if number in written or self._changed(number, call):
                self._made[number].calls.append(call)
        for number in written:
            base = self._tensors[number].base
            if base is not None:
                self._made[base].calls.append(call)

    def _changed(self, number: int, call: Call) -> bool:
        """Returns whether a call made a tensor or changed its autograd state. A call that only returns it does
        neither."""
        if self._tensors[number].created_by == call.index:
            return True
        before, after = self._states.state(number, call.index - 1), self._states.state(number, call.index)
        return (
            before is None or after is None or (before.requires_grad, before.node) != (after.requires_grad, after.node)
        )

    def before(self, number: int, index: int) -> EarlierCalls:
        """Returns the calls before event `index` that made the value of a tensor, the latest first."""
        calls = self.all_of(number)
        return EarlierCalls(calls, bisect_left(calls, index, key=_INDEX))

    def all_of(self, number: int) -> list[Call]:
        """Returns every call that made the value of a tensor, in order. Callers must not change the list."""
        return self._made[number].calls if number in self._made else []

    def of_graph(self, number: int, user: int) -> list[Placed]:
        """Returns the calls that recorded the history which a tensor has when event `user` uses it.

        These are calls that made its value and, if it is a view, that of its base. A tensor that is no view has only
        the history since it was last detached in place.
        """
        base = self._tensors[number].base
        own = self._places(number, user)
        if base is None:
            detached = self._without_history(number)
            position = bisect_left(detached, own.stop)
            return [Placed(number, range(detached[position - 1] + 1 if position else 0, own.stop))]
        return [Placed(number, own), Placed(base, self._places(base, user))]

    def _places(self, number: int, user: int) -> range:
        return range(bisect_left(self.all_of(number), user, key=_INDEX))

    def has_history(self, number: int, call: Call) -> bool:
        """Returns whether a tensor, or the base of which it is a view, required grad after a call."""
        base = self._tensors[number].base
        return (base is not None and self._requires_grad(base, call)) or self._requires_grad(number, call)

    def _requires_grad(self, number: int, call: Call) -> bool:
        state = self._states.state(number, call.index)
        return state is not None and state.requires_grad

    def _without_history(self, number: int) -> list[int]:
        made = self._made[number]
        if made.without_history is None:
            made.without_history = [at for at, call in enumerate(made.calls) if not self._requires_grad(number, call)]
        return made.without_history

    def latest_recorded(self, placed: Placed) -> Iterator[Call]:
        """Yields those of the calls at some places that made nodes, the latest first."""
        made = self._made[placed.number]
        if made.recorded is None:
            made.recorded = [at for at, call in enumerate(made.calls) if call.nodes[1] > call.nodes[0]]
        for position in range(bisect_left(made.recorded, placed.places.stop) - 1, -1, -1):
            at = made.recorded[position]
            if at < placed.places.start:
                return
            yield made.calls[at]


def _returned(call: Call) -> set[int]:
    """Returns the tensors that a call returned, or whose state it left."""
    return {access.tensor for access in call.outputs} | {state.tensor for state in call.states}


@dataclass(frozen=True, slots=True)
class Placed:
    """Some of the calls that made the value of a tensor."""

    number: int
    places: range  # in `Producers.all_of(number)`


class NewCalls:
    """Gives a search through producers only calls that it has not met, without going through the others again."""

    def __init__(self, producers: Producers) -> None:
        self._producers = producers
        self._below: dict[int, dict[int, int]] = defaultdict(dict)  # tensor -> place of a met call -> a lower place

    def before(self, number: int, index: int) -> Iterator[Call]:
        """Yields the calls before event `index` that made the value of a tensor, the latest first, each once."""
        count = len(self._producers.before(number, index))
        return self.among(Placed(number, range(count)), lambda _: True)

    def of_graph(self, number: int, user: int) -> Iterator[Call]:
        """Yields the calls of `Producers.of_graph`, the latest first, each once."""
        for placed in self._producers.of_graph(number, user):
            yield from self.among(placed, lambda call: self._producers.has_history(number, call))

    def among(self, placed: Placed, is_wanted: Callable[[Call], bool]) -> Iterator[Call]:
        """Yields the wanted calls at some places, the latest first. Each is yielded once."""
        calls, below = self._producers.all_of(placed.number), self._below[placed.number]
        at = _unmet(below, placed.places.stop - 1)
        while at >= placed.places.start:
            if is_wanted(calls[at]):
                below[at] = at - 1
                yield calls[at]
            at = _unmet(below, at - 1)


def _unmet(below: dict[int, int], at: int) -> int:
    """Returns the highest place up to `at` that is not in `below`, and shortens the way there."""
    first = at
    while (lower := below.get(at)) is not None:
        at = lower
    while first > at:
        below[first], first = at, below[first]
    return at
