"""What a trace says, asked by diagnostics: pure questions over the recorded events. No guess is made here: a question
whose answer was not recorded is answered by None or by nothing.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator
from functools import cached_property

from tensorlens.analysis.naming.names import Names, names_of
from tensorlens.records.model import (
    Access,
    Backward,
    Call,
    Event,
    Failure,
    GradMode,
    Notice,
    SavedTensor,
    Span,
    State,
    Tensor,
    Trace,
    Write,
)
from tensorlens.records.report import Label

LEAVING = frozenset(
    f"Tensor.{name}" for name in ("item", "tolist", "numpy", "__array__", "__float__", "__int__", "__dlpack__")
)
"""Calls that hand a tensor's values to plain Python or NumPy, where autograd can't follow."""

ENTERING = frozenset(f"torch.{name}" for name in ("tensor", "as_tensor", "asarray", "from_numpy", "from_dlpack"))
"""Calls that make a tensor of what is none."""


class TraceIndex:
    """Indexes over one trace. Cheap to make: each index is built when it is first asked for."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.events = trace.events

    # --- events -------------------------------------------------------------------------------------------------

    def event(self, index: int | None) -> Event | None:
        """The event with this index, if it is still in the window."""
        return self.trace.event(index)

    def call(self, index: int | None) -> Call | None:
        event = self.event(index)
        return event if isinstance(event, Call) else None

    @cached_property
    def calls(self) -> list[Call]:
        return [event for event in self.events if isinstance(event, Call)]

    @cached_property
    def backwards(self) -> list[Backward]:
        return [event for event in self.events if isinstance(event, Backward)]

    def failures(self, code: str) -> Iterator[Failure]:
        """The failures whose message is the catalogue's `code`."""
        return (failure for failure in self.trace.failures if failure.kind == code)

    def notices(self) -> Iterator[Notice]:
        return (event for event in self.events if isinstance(event, Notice))

    def tensor(self, number: int) -> Tensor:
        return self.trace.tensors[number]

    @cached_property
    def names(self) -> Names:
        return names_of(self.trace)

    def name(self, number: int, at: int | None = None) -> str:
        """A short display name of a tensor, as it was known at event `at`."""
        return self.names.of(number, at)

    # --- places -------------------------------------------------------------------------------------------------

    def span(self, site: int | None) -> Span | None:
        return None if site is None or site < 0 else self.trace.sites[site].span

    def same_line(self, one: int | None, other: int | None) -> bool:
        first, second = self.span(one), self.span(other)
        return first is not None and second is not None and (first.file, first.line) == (second.file, second.line)

    def label(self, role: str, site: int | None, text: str) -> Label | None:
        """A label at a site; None where the site is not known."""
        span = self.span(site)
        return None if span is None else Label(role, span, text)

    def times_run(self, site: int, before: int) -> tuple[int, int]:
        """(how often control had come to a site up to and including event `before`, how often in all).

        Calls from one site in direct succession count as one visit: the layers of a module called there.
        """
        visits = self._visits.get(site, [])
        return bisect_right(visits, before), len(visits)

    @cached_property
    def _visits(self) -> dict[int, list[int]]:
        """The indices at which each site was come to from another one."""
        found: dict[int, list[int]] = defaultdict(list)
        last: int | None = None
        for event in self.events:
            if isinstance(event, Call | Backward):
                if event.site != last:
                    found[event.site].append(event.index)
                last = event.site
        return found

    # --- tensors over time --------------------------------------------------------------------------------------

    @cached_property
    def _states(self) -> dict[int, list[tuple[int, State]]]:
        found: dict[int, list[tuple[int, State]]] = defaultdict(list)
        for call in self.calls:
            for state in call.states:
                found[state.tensor].append((call.index, state))
        return found

    def state(self, number: int, at: int) -> State | None:
        """What autograd said of a tensor after event `at`; the first thing known of it, if that came later."""
        states = self._states.get(number)
        if not states:
            return None
        position = bisect_right(states, at, key=lambda pair: pair[0])
        return states[max(position - 1, 0)][1]

    def requires_grad(self, number: int, at: int) -> bool:
        state = self.state(number, at)
        return state is not None and state.requires_grad

    @cached_property
    def _producers(self) -> dict[int, list[Call]]:
        found: dict[int, list[Call]] = defaultdict(list)
        for call in self.calls:
            told = {access.tensor for access in call.outputs}
            told.update([state.tensor for state in call.states])
            written = {write.tensor for write in call.writes}
            for number in told | written:
                if number in written or self._changed(number, call):
                    found[number].append(call)
            bases = (self.tensor(number).base for number in written)
            for base in bases:
                if base is not None:
                    found[base].append(call)
        return found

    def _changed(self, number: int, call: Call) -> bool:
        """Whether a call made a tensor, or changed what autograd says of it; passing it through is neither."""
        if self.tensor(number).created_by == call.index:
            return True
        before, after = self.state(number, call.index - 1), self.state(number, call.index)
        return (
            before is None or after is None or (before.requires_grad, before.node) != (after.requires_grad, after.node)
        )

    def producers(self, number: int, before: int) -> list[Call]:
        """The calls that made the value of a tensor, the latest first: the one that wrote or returned it, and back
        to the one that created it."""
        calls = self._producers.get(number, [])
        return calls[: bisect_left(calls, before, key=lambda call: call.index)][::-1]

    def maker(self, number: int) -> Call | None:
        """The call that returned a tensor first."""
        return self.call(self.tensor(number).created_by)

    def first_use(self, number: int) -> Call | None:
        """The call that created a tensor, or the first in which it was met."""
        made = self.maker(number)
        if made is not None:
            return made
        for call in self.calls:
            if any(access.tensor == number for access in (*call.inputs, *call.outputs)):
                return call
        return None

    # --- memory -------------------------------------------------------------------------------------------------

    def writes(self, counter: int) -> Iterator[tuple[Call | Backward, Write]]:
        """The recorded changes in place that moved a version counter, in order."""
        for event in self.events:
            for write in _writes_of(event):
                if self.tensor(write.tensor).counter == counter:
                    yield event, write  # type: ignore[misc]

    def storage_of(self, number: int, at: int) -> int | None:
        """Where a tensor lies after event `at`: it may have been moved since it was made."""
        state = self.state(number, at)
        return state.storage if state is not None and state.storage is not None else self.tensor(number).storage

    def storages_of(self, number: int) -> set[int]:
        """Every storage that a tensor is known to have lain in."""
        places = {self.tensor(number).storage, *(state.storage for _, state in self._states.get(number, ()))}
        return {place for place in places if place is not None}

    # --- nodes --------------------------------------------------------------------------------------------------

    def call_of_node(self, sequence: int | None, before: int) -> Call | None:
        """The innermost call that made the node with this sequence number."""
        best: Call | None = None
        for call in reversed(self.calls):
            first, last = call.nodes
            if sequence is not None and call.index < before and first <= sequence < last:
                if best is None or (last - first) < (best.nodes[1] - best.nodes[0]):
                    best = call
                if last - first == 1:
                    break
        return best

    def saved(self, saved: SavedTensor, by: Call) -> Access | None:
        """The tensor object, among what the saving call read or made, that lies where the saved one does."""
        for access in (*by.inputs, *by.outputs):
            if access.tensor == saved.tensor and access.version == saved.expected:
                return access
        result_first = saved.slot.startswith(("result", "output"))
        groups = (by.outputs, by.inputs) if result_first else (by.inputs, by.outputs)
        candidates = [a for group in groups for a in group if self.storage_of(a.tensor, by.index) == saved.storage]
        for access in candidates:
            if access.version == saved.expected and self.tensor(access.tensor).shape == saved.shape:
                return access
        for access in candidates:
            if access.version == saved.expected:
                return access
        return candidates[0] if candidates else None

    # --- switches -----------------------------------------------------------------------------------------------

    def mode_switch(self, before: int) -> GradMode | None:
        """The switch that put recording into the state in which event `before` found it."""
        depth = 0
        for event in reversed(self.events[: self.trace.position(before)]):
            if not isinstance(event, GradMode):
                continue
            if not event.entering:
                depth += 1
            elif depth:
                depth -= 1
            elif event.mode != "grad" and event.cause != "enable_grad":
                return event
        return None


def _writes_of(event: Event) -> tuple[Write, ...]:
    if isinstance(event, Call):
        return event.writes
    if isinstance(event, Backward):
        return tuple(gradient.write for gradient in event.gradients if gradient.write is not None)
    return ()
