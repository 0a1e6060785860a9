"""Finds out whether what a call is given was computed from the gradient of a leaf, a few calls before."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator
from itertools import islice

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.records.model import Call

MAX_WALK = 12  # calls back from an input
_FEW = 8  # inputs


class NearGradients:
    """The gradients from which the inputs of calls were computed. `gradient_of` maps gradients to their leaves.

    One call may be given, and may have changed, thousands of tensors: it is gone through once for all leaves.
    """

    def __init__(self, facts: TraceIndex, gradient_of: dict[int, int]) -> None:
        self._facts = facts
        self._gradient_of = gradient_of
        self._with_gradient = frozenset(gradient_of.values())
        self._leaves: dict[int, frozenset[int]] = {}  # call -> the leaves whose gradients it is given
        self._large: tuple[Call, dict[int, set[int]]] | None = None  # the last large call: leaf -> inputs

    def are_used(self, call: Call, leaf: int) -> bool:
        """Returns whether an input that a call did not change, other than the leaf, was computed from its gradient."""
        if leaf not in self._with_gradient:
            return False
        if len(call.inputs) <= _FEW:
            return any(leaf in leaves for number, leaves in self._inputs(call) if number != leaf)
        if self._large is None or self._large[0] is not call:
            self._large = call, self._by_leaf(call)
        return any(number != leaf for number in self._large[1].get(leaf, ()))

    def _inputs(self, call: Call) -> Iterator[tuple[int, frozenset[int]]]:
        """Yields inputs that a call did not change, with leaves whose gradients they are or were computed from."""
        changed = {write.tensor for write in call.writes}
        for number in (access.tensor for access in call.inputs if access.tensor not in changed):
            leaf = self._gradient_of.get(number)
            if leaf is not None:
                yield number, frozenset([leaf])
            for made in islice(self._made(number, call.index), MAX_WALK):
                yield number, self._leaves_of(made)

    def _made(self, number: int, before: int) -> Iterator[Call]:
        """Yields the calls that made a value, the nearest first. Of those that write to one tensor, each is met once
        as what an input of the next one was: an average has a write of each step, and the last one read a gradient."""
        waiting, seen = deque([(number, before)]), set[int]()
        while waiting:
            made = next(iter(self._facts.producers(*waiting.popleft())), None)
            if made is not None and made.index not in seen:
                seen.add(made.index)
                waiting.extend((access.tensor, made.index) for access in made.inputs)
                yield made

    def _leaves_of(self, call: Call) -> frozenset[int]:
        found = self._leaves.get(call.index)
        if found is None:
            leaves = (self._gradient_of.get(access.tensor) for access in call.inputs)
            found = self._leaves[call.index] = frozenset(leaf for leaf in leaves if leaf is not None)
        return found

    def _by_leaf(self, call: Call) -> dict[int, set[int]]:
        """Maps leaves to inputs of a call that were computed from their gradients: two inputs, if there are more."""
        inputs: dict[frozenset[int], set[int]] = defaultdict(set)
        for number, leaves in self._inputs(call):
            if leaves and len(inputs[leaves]) < 2:  # one of two is not the leaf
                inputs[leaves].add(number)
        found: dict[int, set[int]] = defaultdict(set)
        for leaves, numbers in inputs.items():
            for leaf in leaves:
                found[leaf] |= numbers
        return found
