"""Follows the history of tensors through the calls that recorded it, each call once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.records.model import Backward, Call


class GraphSearch:
    """Finds the calls that recorded the history of tensors, for one search that follows each call once."""

    def __init__(self, facts: TraceIndex) -> None:
        self._facts = facts
        self._new_calls = facts.new_calls()

    def new_calls(self, number: int, user: int) -> list[Call]:
        """Finds the calls that recorded the history which a tensor has when event `user` uses it, the latest first,
        without those that it has returned for this tensor before."""
        calls = list(self._new_calls.of_graph(number, user))
        made = _call_of_node(self._facts, number, user)
        return calls if made is None else [*calls, made]

    def is_made(self, number: int, user: int) -> bool:
        """Returns whether a call is known that recorded the history which a tensor has when event `user` uses it."""
        makers = self._facts.value_makers
        return (
            any(
                makers.has_history(number, makers.all_of(placed.number)[place])
                for placed in makers.of_graph(number, user)
                for place in reversed(placed.places)
            )
            or _call_of_node(self._facts, number, user) is not None
        )


def _call_of_node(facts: TraceIndex, number: int, user: int) -> Call | None:
    """Finds the call that made the node of a tensor which a hook used before the call had returned."""
    makers = facts.value_makers
    recorded = (call for placed in makers.of_graph(number, user) for call in makers.latest_recorded(placed))
    if any(makers.has_history(number, call) for call in recorded):
        return None
    state = facts.state(number, user - 1)
    return None if state is None else facts.call_of_node(state.node, user, state.grad_fn)


class UsedTensors:
    """Remembers the calls that a search from a backward pass reached, and through which of their inputs it went on."""

    def __init__(self, facts: TraceIndex, backward: Backward) -> None:
        self._facts = facts
        self._used: dict[int, list[int]] = {backward.index: []}  # event -> the tensors that the search followed
        self._backward = backward
        self._leading: set[int] = set()
        self._places: dict[int, list[int]] = defaultdict(list)  # tensor -> those of leading calls among its producers

    def __len__(self) -> int:
        return len(self._used)

    def note(self, number: int, user: int) -> None:
        """Remembers that the search went on through a tensor that event `user` uses."""
        self._used[user].append(number)

    def add(self, call: Call) -> bool:
        """Adds a call. Returns whether it is new."""
        if call.index in self._used:
            return False
        self._used[call.index] = []
        return True

    def leading_to(self, requested: tuple[int, ...]) -> Iterator[int]:
        """Yields the calls on a path to the requested tensors; all calls if no tensors were requested."""
        for index in sorted(
            self._used.keys() - {self._backward.index}
        ):  # a call comes after those that made its inputs
            if requested and not self._leads(index, requested):
                continue
            yield index
            call = self._facts.call(index)
            if requested and call is not None:
                self._note_leading(call)

    def _leads(self, index: int, requested: tuple[int, ...]) -> bool:
        call = self._facts.call(index)
        inputs = () if call is None else [access.tensor for access in call.inputs]
        return not set(requested).isdisjoint(inputs) or any(self._is_from(each, index) for each in self._used[index])

    def _note_leading(self, call: Call) -> None:
        self._leading.add(call.index)
        changed = {access.tensor for access in call.outputs} | {state.tensor for state in call.states}
        changed.update([write.tensor for write in call.writes])
        changed.update([base for base in [self._facts.tensor(number).base for number in changed] if base is not None])
        for number in changed:
            producers = self._facts.producers(number, call.index + 1)
            if producers and producers[0] is call:
                self._places[number].append(len(producers) - 1)

    def _is_from(self, number: int, user: int) -> bool:
        """Returns whether a leading call recorded the history that a tensor has when event `user` uses it."""
        makers = self._facts.value_makers
        for placed in makers.of_graph(number, user):
            calls = makers.all_of(placed.number)
            for place in reversed(self._places.get(placed.number, ())):
                if place < placed.places.start:
                    break
                if place < placed.places.stop and makers.has_history(number, calls[place]):
                    return True
        made = _call_of_node(self._facts, number, user)
        return made is not None and made.index in self._leading
