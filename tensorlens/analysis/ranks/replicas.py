"""Compares the replicas that `DistributedDataParallel` wrappers hold on several ranks.

Only tensors of a wrapped module are compared, each with the one of the same name in the same wrapper of another rank:
other tensors may differ between ranks on purpose.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from tensorlens.records.distributed import ReplicaState, Wrapped
from tensorlens.records.model import Trace

_OWN_WAY = {"comm_hook", "fused_optimizer", "mixed_precision", "delay_all_reduce_named_params"}
"""Options with which the program itself decides what ranks have in common."""


@dataclass(frozen=True)
class Replica:
    """The module that one rank has wrapped."""

    rank: int
    trace: Trace
    wrapped: Wrapped

    @cached_property
    def options(self) -> set[str]:
        later = (each.name for each in self.trace.inspection.wrapper_options if each.number == self.wrapped.number)
        return {*self.wrapped.options, *later}

    @cached_property
    def states(self) -> dict[int, ReplicaState]:
        """The states by the number of the step; negative: when the run ended, after as many steps."""
        return {each.step: each for each in self.trace.inspection.replicas if each.number == self.wrapped.number}

    @property
    def parameters(self) -> int:
        """The number of parameters, which come before the buffers."""
        return sum(kind != "buffer" for kind in self.wrapped.kinds)

    def before(self, state: ReplicaState) -> int:
        """Returns the index of the state that was noted before another one, or of the wrapping."""
        earlier = [each.index for each in self.states.values() if each.index < state.index]
        return max(earlier, default=self.wrapped.index)

    @cached_property
    def broadcasts(self) -> bool:
        return {"broadcast_buffers", "forward_sync_buffers"} <= self.options


@dataclass(frozen=True)
class StateDifference:
    """The first step at which tensors of two replicas differ."""

    step: int
    one: Replica
    other: Replica
    positions: tuple[int, ...]  # of the tensors, in `Wrapped`

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.one.wrapped.names[position] for position in self.positions)

    def state(self, replica: Replica) -> ReplicaState:
        return replica.states[self.step]


@dataclass(frozen=True)
class ReplicaGroup:
    """The replicas of one module, by rank."""

    replicas: tuple[Replica, ...]

    @property
    def is_alike(self) -> bool:
        """Returns whether all ranks wrapped parameters of the same names, in the same order."""
        return len({(each.wrapped.names, each.wrapped.kinds) for each in self.replicas}) == 1

    @cached_property
    def gradient_difference(self) -> StateDifference | None:
        """The first step that finds gradients of one parameter that differ between two ranks."""
        if not self.is_alike or any(each.options & _OWN_WAY for each in self.replicas):
            return None
        return self._first(lambda state, _: state.gradients, at_end=False)

    @cached_property
    def value_difference(self) -> StateDifference | None:
        """The first step that finds parameters which differ between two ranks."""
        if not self.is_alike or not all("init_sync" in each.options for each in self.replicas):
            return None
        if any(each.options & _OWN_WAY for each in self.replicas):
            return None
        return self._first(lambda state, replica: state.values[: replica.parameters], at_end=True)

    @cached_property
    def buffer_difference(self) -> StateDifference | None:
        """The first step that finds buffers which differ between two ranks and that no forward pass makes alike."""
        if not self.is_alike or any(each.broadcasts or "buffer_hook" in each.options for each in self.replicas):
            return None
        return self._first(
            lambda state, replica: (0,) * replica.parameters + state.values[replica.parameters :], at_end=True
        )

    def _first(
        self, numbers: Callable[[ReplicaState, Replica], tuple[int, ...]], at_end: bool
    ) -> StateDifference | None:
        base = self.replicas[0]
        for step in sorted(base.states, key=lambda number: (number < 0, abs(number))):
            if step < 0 and not at_end:
                continue
            for other in self.replicas[1:]:
                if step in other.states:
                    own, others = numbers(base.states[step], base), numbers(other.states[step], other)
                    pairs = zip(own, others, strict=True)
                    positions = tuple(n for n, (a, b) in enumerate(pairs) if a != b and -1 not in (a, b))
                    if positions:
                        return StateDifference(step, base, other, positions)
        return None


def replica_groups(traces: Mapping[int, Trace]) -> Iterator[ReplicaGroup]:
    """Yields the modules that at least two ranks have wrapped: the n-th wrapper of a group of ranks is one module."""
    found: dict[tuple[tuple[int, ...], int], list[Replica]] = {}
    for rank, trace in sorted(traces.items()):
        met: dict[tuple[int, ...], int] = {}
        for wrapped in trace.inspection.wrapped:
            number = met.get(wrapped.group, 0)
            met[wrapped.group] = number + 1
            found.setdefault((wrapped.group, number), []).append(Replica(rank, trace, wrapped))
    yield from (ReplicaGroup(tuple(each)) for each in found.values() if len(each) > 1)
