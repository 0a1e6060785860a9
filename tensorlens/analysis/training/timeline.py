"""Orders what happened to each leaf and its gradient.

Backward fills the gradient, the script clears or changes it, and an update changes the leaf.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import inf
from typing import Literal

from tensorlens.analysis.naming.storage_numbers import owners_of_gradients
from tensorlens.analysis.ranks.sharded_run import is_sharded
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.near_gradients import NearGradients
from tensorlens.records.model import Backward, Call, Gap, Gradient
from tensorlens.records.observations import Step

GRAD_SET = "Tensor.grad.__set__"
DATA_SET = "Tensor.data.__set__"
FLAG_SETS = ("Tensor.requires_grad_", "Tensor.requires_grad.__set__")  # calls that set `requires_grad` of a tensor
GRAD_READ = "Tensor.grad.__get__"
_CHANGING = (GRAD_SET, DATA_SET, "torch._fused_")  # change a leaf or its gradient, with or without a write

Kind = Literal["fill", "clear", "touch", "update"]
"""What happened: backward filled the gradient ("fill"), the script cleared it ("clear") or changed it in another way
("touch"), or something changed the leaf ("update")."""


@dataclass(frozen=True, slots=True)
class Moment:
    """One thing that happened to a leaf or to its gradient."""

    index: int
    kind: Kind
    event: Call | Backward | Step
    fresh: bool = True  # of a "fill": there was no gradient before; of an "update": it used the gradient


@dataclass(frozen=True, slots=True)
class LastChanges:
    """The index of the last call that changed each tensor."""

    by_data: dict[int, int]  # of the last assignment to the `.data` of a tensor
    by_storage: dict[int | None, int]  # of the last write to a storage


class Training:
    """Collects the moments of every leaf that had a gradient or that an optimizer stepped."""

    def __init__(self, facts: TraceIndex) -> None:
        self.facts = facts
        self.steps = facts.trace.inspection.steps

    @cached_property
    def last_changes(self) -> LastChanges:
        """The last changes that calls made. One look at each call answers this for thousands of parameters."""
        return self._changes_until(inf)

    @cached_property
    def last_changes_in_training(self) -> LastChanges:
        """The same before the last backward pass or step: a script may load its best parameters after them."""
        ends = [each.index for each in self.facts.backwards[-1:]] + [each.index for each in self.steps[-1:]]
        return self._changes_until(max(ends, default=inf))

    def _changes_until(self, end: float) -> LastChanges:
        facts, calls = self.facts, [call for call in self.facts.calls if call.index <= end]
        by_data = {call.inputs[0].tensor: call.index for call in calls if call.op == DATA_SET}
        written = ((write.tensor, call.index) for call in calls for write in call.writes)
        return LastChanges(by_data, {facts.storage_of(number, index): index for number, index in written})

    # --- optimizers -----------------------------------------------------------------------------------------------

    @cached_property
    def optimizers(self) -> list[list[Step]]:
        """The steps of each optimizer. Steps with the same first parameter belong to one optimizer."""
        groups: dict[tuple[str, int], list[Step]] = defaultdict(list)
        for step in self.steps:
            if step.parameters:
                groups[step.op, step.parameters[0]].append(step)
        return list(groups.values())

    @cached_property
    def stepped(self) -> set[int]:
        """The parameters that an optimizer stepped."""
        return {number for step in self.steps for number in step.parameters}

    @cached_property
    def had_gradient(self) -> set[int]:
        """The leaves that ever had a gradient: from a backward pass, or at an optimizer step. Library code assigns that
        of a subclass, such as a sharded tensor."""
        filled = {change.tensor for event in self.facts.backwards for change in event.gradients}
        pairs = (pair for step in self.steps for pair in zip(step.parameters, step.gradients, strict=True))
        kept = {state.tensor for state in self.facts.trace.end.states if state.grad is not None}
        assigned = {number for number in kept if self.facts.tensor(number).type not in ("Tensor", "Parameter")}
        return filled | assigned | {number for number, gradient in pairs if gradient is not None}

    @cached_property
    def gradient_read(self) -> set[int]:
        """The leaves whose `.grad` the script's own lines read, not only library code."""
        reads = (call for call in self.facts.calls if call.op == GRAD_READ)
        sites = self.facts.trace.sites
        return {c.inputs[0].tensor for c in reads if self.facts.names.syntax.is_direct(sites[c.site], GRAD_READ)}

    def optimizer_call(self, step: Step) -> Call | None:
        """Finds the call that made the optimizer of a step."""
        kind = "optim." + step.op.removesuffix(".step")
        wanted = set(step.parameters)
        calls = [c for c in self.facts.calls if c.op == kind and c.index < step.index]
        return next((c for c in reversed(calls) if wanted & {a.tensor for a in c.inputs}), None)

    @cached_property
    def is_hidden(self) -> bool:
        """True if compiled code ran: what it reads and changes is not recorded. Also if a step changes parts of
        parameters, while forward and backward use the whole ones."""
        return is_sharded(self.facts.trace) or any(
            isinstance(event, Gap) and "torch.compile" in event.reason for event in self.facts.events
        )

    # --- moments --------------------------------------------------------------------------------------------------

    @cached_property
    def leaves(self) -> set[int]:
        return self.stepped | self.had_gradient

    @cached_property
    def moments(self) -> dict[int, list[Moment]]:
        """Maps each leaf to its moments, in order."""
        moments: dict[int, list[Moment]] = defaultdict(list)
        for number, moment in sorted(self._all(), key=_order):
            moments[number].append(moment)
        return moments

    def last_moment(self, number: int, before: int, *kinds: Kind) -> Moment | None:
        """Finds the last moment of one of the kinds before an event."""
        moments = self.moments.get(number, ())
        limit = bisect_left(moments, before, key=lambda moment: moment.index)
        places = [self._places.get((number, kind), []) for kind in kinds]
        earlier = [of_kind[n - 1] for of_kind in places if (n := bisect_left(of_kind, limit))]
        return moments[max(earlier)] if earlier else None

    @cached_property
    def _places(self) -> dict[tuple[int, Kind], list[int]]:
        """The positions in a leaf's moments of those of one kind."""
        places: dict[tuple[int, Kind], list[int]] = defaultdict(list)
        for number, moments in self.moments.items():
            for place, moment in enumerate(moments):
                places[number, moment.kind].append(place)
        return places

    def first_fill(self, number: int) -> Moment | None:
        return next((m for m in self.moments.get(number, ()) if m.kind == "fill"), None)

    def last_fill(self, number: int) -> Moment | None:
        return next((m for m in reversed(self.moments.get(number, ())) if m.kind == "fill"), None)

    def is_updated(self, number: int) -> bool:
        """Returns whether a leaf changed after its first gradient. Changes before that initialise it."""
        kinds = [moment.kind for moment in self.moments.get(number, ())]
        return "update" in kinds[kinds.index("fill") :] if "fill" in kinds else "update" in kinds

    def is_left_out(self, number: int) -> bool:
        """Returns whether an optimizer could have been given a leaf that nothing ever updated.

        The leaf existed before the optimizer was made, and it got a gradient before a step of this optimizer.
        """
        filled = self.first_fill(number)
        use = self.facts.first_use(number)
        if filled is None or use is None or number in self.stepped or self.is_updated(number):
            return False
        later = [step for step in self.steps if step.index > filled.index]
        return any((made := self.optimizer_call(step)) is not None and use.index < made.index for step in later)

    def _all(self) -> Iterator[tuple[int, Moment]]:
        start = self.complete_from
        for event in self.facts.events:
            if event.index < start:
                continue
            if isinstance(event, Backward):
                for change in event.gradients:
                    yield change.tensor, _fill(event, change)
            elif isinstance(event, Call) and (event.writes or event.op.startswith(_CHANGING)):
                yield from self._of_call(event)
        for step in self.steps:
            if step.index >= start:
                yield from self._of_step(step)

    @cached_property
    def complete_from(self) -> int:
        """Returns the index from which on no event is missing: a long run folds some of the earlier ones."""
        start: int | None = None
        for event in reversed(self.facts.events):
            if start is not None and event.index != start - 1:
                break
            start = event.index
        return start or 0

    def _of_step(self, step: Step) -> Iterator[tuple[int, Moment]]:
        for number, gradient in zip(step.parameters, step.gradients, strict=True):
            if gradient is not None:
                yield number, Moment(step.index, "update", step)

    def _of_call(self, call: Call) -> Iterator[tuple[int, Moment]]:
        if call.op == GRAD_SET:
            kind: Kind = "clear" if len(call.inputs) == 1 else "touch"
            yield call.inputs[0].tensor, Moment(call.index, kind, call)
        elif call.op == DATA_SET:
            yield from self._update([call.inputs[0].tensor], call)
        elif call.op.startswith(_CHANGING):
            yield from self._update([access.tensor for access in call.inputs], call)
        else:
            yield from self._of_writes(call)

    def _of_writes(self, call: Call) -> Iterator[tuple[int, Moment]]:
        written = [write.tensor for write in call.writes]
        for number in written:
            leaf = self._gradient_owner(number, call.index)
            if leaf is not None:
                kind: Kind = "clear" if call.op.endswith("zero_") else "touch"
                yield leaf, Moment(call.index, kind, call)
        yield from self._update(written, call)

    def _update(self, numbers: Iterable[int], call: Call) -> Iterator[tuple[int, Moment]]:
        for number in numbers:
            leaf = self._leaf_at(number, call.index)
            if leaf is not None:
                yield leaf, Moment(call.index, "update", call, bool(call.within) or self.uses_gradient(call, leaf))

    def _leaf_at(self, number: int, at: int) -> int | None:
        """Returns the leaf that a tensor is, or whose storage it shares; None for a gradient."""
        if number in self.leaves:
            return number
        if number in self.gradient_of:
            return None
        return self._memory.get(self.facts.storage_of(number, at))

    @cached_property
    def _memory(self) -> dict[int | None, int]:
        """The first leaf that used each storage."""
        leaves: dict[int | None, int] = {}
        for number in sorted(self.leaves, reverse=True):
            for storage in self.facts.storages_of(number):
                leaves[storage] = number
        return leaves

    def _gradient_owner(self, number: int, at: int) -> int | None:
        """Returns the leaf whose gradient a tensor is or shares memory with, as `w.grad.data` does."""
        leaf = self.gradient_of.get(number)
        return self._gradient_memory.get(self.facts.storage_of(number, at)) if leaf is None else leaf

    @cached_property
    def _gradient_memory(self) -> dict[int | None, int]:
        """The leaf of each storage that has held the gradients of that leaf alone."""
        leaves: dict[int | None, set[int]] = defaultdict(set)
        for number, leaf in self.gradient_of.items():
            for storage in self.facts.storages_of(number):
                leaves[storage].add(leaf)
        return {storage: next(iter(found)) for storage, found in leaves.items() if len(found) == 1}

    @cached_property
    def gradient_of(self) -> dict[int, int]:
        """The leaf of each tensor that was a `.grad`."""
        leaves = owners_of_gradients(self.facts.trace)
        for step in self.steps:
            pairs = zip(step.gradients, step.parameters, strict=True)
            leaves.update({gradient: number for gradient, number in pairs if gradient is not None})
        return leaves

    def uses_gradient(self, call: Call, leaf: int) -> bool:
        """Returns whether an update by hand was computed from the leaf's gradient."""
        return self._near_gradients.are_used(call, leaf)

    @cached_property
    def _near_gradients(self) -> NearGradients:
        return NearGradients(self.facts, self.gradient_of)


def _order(pair: tuple[int, Moment]) -> tuple[int, bool]:
    """Returns a sort key that puts a step before its first call: both have the same index."""
    return pair[1].index, not isinstance(pair[1].event, Step)


def _fill(event: Backward, change: Gradient) -> Moment:
    return Moment(event.index, "fill", event, change.before is None)


@lru_cache(maxsize=1)
def training_of(facts: TraceIndex) -> Training:
    """Returns the `Training` of a trace, which is made once."""
    return Training(facts)


def cleared_at(training: Training, step: Step, position: int) -> Moment | None:
    """Finds what cleared a gradient before an optimizer step, if the step found it None or still zero."""
    number = step.parameters[position]
    last = training.last_moment(number, step.index, "fill", "clear", "touch")
    if last is None or last.kind != "clear" or not isinstance(last.event, Call):
        return None
    if step.gradients[position] is None:
        return last
    written = {write.tensor: write.after for write in last.event.writes}
    return last if written.get(step.gradients[position] or 0) == step.versions[position] else None
