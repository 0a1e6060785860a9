"""Answers questions about one trace: which call made a tensor, what its state was, which line saved or changed it.

No answer is a guess: if the trace does not establish it, the answer is None or empty.
"""

from __future__ import annotations

import ast
import math
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator
from functools import cached_property
from operator import attrgetter

from tensorlens.analysis.mode_switches import open_switch
from tensorlens.analysis.naming.line_parts import span_of
from tensorlens.analysis.naming.names import Names, names_of
from tensorlens.analysis.naming.places import Scope, callers, place_of
from tensorlens.analysis.node_calls import NodeCalls
from tensorlens.analysis.per_trace import once_per_trace
from tensorlens.analysis.producers import EarlierCalls, NewCalls, Producers
from tensorlens.analysis.statement_heads import head_of
from tensorlens.analysis.states import StateHistory, states_of
from tensorlens.records.failure_context import SavedTensor
from tensorlens.records.model import Backward, Call, Event, Failure, GradMode, Notice, Span, State, Tensor, Trace, Write
from tensorlens.records.report import Label
from tensorlens.records.source import text_of, tree_of

_COUNTED = (Call, Backward)
OPS_LEAVING_TORCH = frozenset(
    f"Tensor.{name}" for name in ("item", "tolist", "numpy", "__array__", "__float__", "__int__", "__dlpack__")
)
"""Calls that return a tensor's values to plain Python or NumPy, where autograd can't follow them."""

OPS_ENTERING_TORCH = frozenset(
    f"torch.{name}" for name in ("tensor", "as_tensor", "asarray", "from_numpy", "from_dlpack")
)
"""Calls that make a tensor from values that are no tensor."""


class TraceIndex:
    """Indexes one trace. It is cheap to make: each index is built when it is first needed."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.events = trace.events

    # --- events -------------------------------------------------------------------------------------------------

    def event(self, index: int | None) -> Event | None:
        """Returns the event with this index; None if a long run has folded it."""
        return self.trace.event(index)

    def call(self, index: int | None) -> Call | None:
        event = self.event(index)
        return event if isinstance(event, Call) else None

    @cached_property
    def calls(self) -> list[Call]:
        return [event for event in self.events if isinstance(event, Call)]

    def calls_between(self, first: int, last: float = math.inf) -> Iterator[Call]:
        """Yields the calls from the event `first` to the event `last`, without a search through the earlier ones."""
        for place in range(bisect_left(self.calls, first, key=attrgetter("index")), len(self.calls)):
            if self.calls[place].index > last:
                return
            yield self.calls[place]

    @cached_property
    def backwards(self) -> list[Backward]:
        return [event for event in self.events if isinstance(event, Backward)]

    def failures(self, code: str) -> Iterator[Failure]:
        """Yields the failures whose message belongs to a code."""
        return (failure for failure in self.trace.failures if failure.kind == code)

    def notices(self) -> Iterator[Notice]:
        return (event for event in self.events if isinstance(event, Notice))

    def tensor(self, number: int) -> Tensor:
        return self.trace.tensors[number]

    @cached_property
    def names(self) -> Names:
        return names_of(self.trace)

    def name(self, number: int, at: int | None = None) -> str:
        """Returns a short name of a tensor, as the line of event `at` would write it."""
        return self.names.display_name(number, at)

    # --- places -------------------------------------------------------------------------------------------------

    def span(self, site: int | None) -> Span | None:
        return None if site is None or site < 0 else self.trace.sites[site].span

    def node_at(self, site: int | None) -> ast.AST | None:
        """Returns the part of the syntax tree at a site; None if it is not known."""
        span = self.span(site)
        return None if span is None else self.names.syntax.node(span)

    def scope(self, site: int) -> Scope:
        """Returns the file and the function of a site."""
        return place_of(self.trace.sites[site])[:2]

    def call_chain(self, site: int) -> list[int]:
        """Lists a site and those that it was called from, the innermost first."""
        return [site, *callers(self.trace, site)]

    def site_in(self, scope: Scope, site: int) -> int | None:
        """Finds the line of a function that led to a site, or is the site."""
        return next((each for each in self.call_chain(site) if self.scope(each) == scope), None)

    def same_line(self, one: int | None, other: int | None) -> bool:
        first, second = self.span(one), self.span(other)
        return first is not None and second is not None and (first.file, first.line) == (second.file, second.line)

    def tree(self, file: str) -> ast.Module:
        """Returns the syntax tree of a file, which callers must not change; an empty one if the file is not Python."""
        return tree_of(self.trace.sources.get(file, "")) or ast.Module([], [])

    def trees(self) -> Iterator[tuple[str, ast.Module]]:
        """Yields the files of the program that are Python, each with its syntax tree."""
        return ((file, tree) for file, text in self.trace.sources.items() if (tree := tree_of(text)) is not None)

    def span_of(self, node: ast.AST, file: str) -> Span:
        """Returns the place of a part of a file's syntax tree that has a place."""
        return span_of(node, self.trace.sources[file], file)  # type: ignore[arg-type]

    def code_of(self, node: ast.AST, file: str) -> str:
        """Returns a part of a file's syntax tree as the script writes it."""
        return text_of(self.trace.sources[file], self.span_of(node, file))

    def label(self, role: str, site: int | None, text: str, event: int | None = None) -> Label | None:
        """Makes a label at a site; None if the site is not known. Of a statement with a block it marks the head."""
        span = self.span(site)
        if span is None:
            return None
        return Label(role, head_of(self.names.syntax, self.trace.sources.get(span.file, ""), span), text, site, event)

    def times_run(self, site: int, before: int) -> tuple[int, int]:
        """Returns (how often a site had run up to and including event `before`, how often it ran in all).

        Calls in direct succession count once, because a module that is called at the site makes several.
        """
        visits = self._visits.get(site, [])
        return bisect_right(visits, before), len(visits)

    @cached_property
    def _visits(self) -> dict[int, list[int]]:
        """The indices, by site, of the events that follow an event at another site."""
        visits: dict[int, list[int]] = defaultdict(list)
        last: int | None = None
        for event in self.events:
            if isinstance(event, _COUNTED):
                if event.site != last:
                    visits[event.site].append(event.index)
                last = event.site
        return visits

    # --- tensors over time --------------------------------------------------------------------------------------

    @cached_property
    def states(self) -> StateHistory:
        return states_of(self.trace)

    def state(self, number: int, at: int) -> State | None:
        """Returns the state of a tensor after event `at`; its first recorded state if that came later."""
        return self.states.state(number, at)

    def requires_grad(self, number: int, at: int) -> bool:
        state = self.state(number, at)
        return state is not None and state.requires_grad

    def is_leaf_requiring_grad(self, number: int, at: int) -> bool:
        state = self.state(number, at)
        return state is not None and state.is_leaf and state.requires_grad

    @cached_property
    def value_makers(self) -> Producers:
        return Producers(self.trace.tensors, self.states, self.calls)

    def producers(self, number: int, before: int) -> EarlierCalls:
        """Returns the calls before event `before` that made the value of a tensor, the latest first.

        These are the call that created the tensor, and those that wrote to it or changed its autograd state.
        """
        return self.value_makers.before(number, before)

    def new_calls(self) -> NewCalls:
        """Makes a memory of the producers that one search has met."""
        return NewCalls(self.value_makers)

    def creator(self, number: int) -> Call | None:
        """Returns the call that returned a tensor first."""
        return self.call(self.tensor(number).created_by)

    def first_use(self, number: int) -> Call | None:
        """Returns the call that created a tensor, else the first that used it."""
        return self.creator(number) or self._first_uses.get(number)

    @cached_property
    def _first_uses(self) -> dict[int, Call]:
        uses: dict[int, Call] = {}
        for call in self.calls:
            for access in (*call.inputs, *call.outputs):
                uses.setdefault(access.tensor, call)
        return uses

    # --- memory -------------------------------------------------------------------------------------------------

    def writes(self, counter: int) -> Iterator[tuple[Call | Backward, Write]]:
        """Yields the in-place changes that moved a version counter, in order."""
        yield from self._writes.get(counter, ())

    @cached_property
    def _writes(self) -> dict[int, list[tuple[Call | Backward, Write]]]:
        writes: dict[int, list[tuple[Call | Backward, Write]]] = defaultdict(list)
        for event in self.events:
            for write in _writes_of(event):
                writes[self.tensor(write.tensor).counter].append((event, write))  # type: ignore[arg-type]
        return writes

    def storage_of(self, number: int, at: int) -> int | None:
        """Returns the storage of a tensor after event `at`: `.data = ...` can change it."""
        state = self.state(number, at)
        return state.storage if state is not None and state.storage is not None else self.tensor(number).storage

    def storages_of(self, number: int) -> set[int]:
        """Returns every storage that a tensor is known to have used."""
        return self.states.storages(number)

    # --- nodes --------------------------------------------------------------------------------------------------

    def call_of_node(self, sequence: int | None, before: int, name: str | None = None) -> Call | None:
        """Returns the innermost call that made the node with this sequence number.

        Each thread counts its nodes from 0. If several threads made nodes, the answer is the only call that can have
        made a node with this number, and with this `name` if it is known; None if several can.
        """
        if self.trace.inspection.others:
            return self._only_call_of_node(sequence, before, name)
        return None if sequence is None else self._node_calls.innermost(sequence, before)

    @cached_property
    def _node_calls(self) -> NodeCalls:
        return NodeCalls(self.calls)

    def _only_call_of_node(self, sequence: int | None, before: int, name: str | None) -> Call | None:
        if sequence is None or (self.events and self.events[-1].index >= len(self.events)):
            return None  # a long run has folded calls: one of these may have made the node
        fitting: list[Call] = []
        for call in self.calls:
            if call.index < before and call.nodes[0] <= sequence < call.nodes[1]:
                names = {state.grad_fn for state in call.states if state.node == sequence} - {None}
                if not name or names <= {name}:
                    fitting.append(call)
        return fitting[0] if len(fitting) == 1 else None

    def saved_tensor(self, saved: SavedTensor, by: Call) -> int | None:
        """Returns the input or output of the call `by` that its node saved.

        It is the same object if that is known, else one in the same storage, preferably with the saved version and
        shape.
        """
        for access in (*by.inputs, *by.outputs):
            if access.tensor == saved.tensor and access.version == saved.expected:
                return access.tensor
        accesses = (*by.outputs, *by.inputs) if is_result_slot(saved.slot) else (*by.inputs, *by.outputs)
        near = [access for access in accesses if self.storage_of(access.tensor, by.index) == saved.storage]
        same_version = [access for access in near if access.version == saved.expected]
        same_shape = [access for access in same_version if self.tensor(access.tensor).shape == saved.shape]
        return next((access.tensor for access in (*same_shape, *same_version, *near)), None)

    # --- switches -----------------------------------------------------------------------------------------------

    def mode_switch(self, before: int) -> GradMode | None:
        """Returns the switch, such as `no_grad`, that had turned gradient recording off at event `before`."""
        return open_switch(self.trace, self._mode_switches, before)

    @cached_property
    def _mode_switches(self) -> list[GradMode]:
        return [event for event in self.events if isinstance(event, GradMode)]


@once_per_trace
def index_of(trace: Trace) -> TraceIndex:
    """Returns the index of a trace. The findings, the story and the tables share one: each part of it is built once."""
    return TraceIndex(trace)


def is_result_slot(slot: str) -> bool:
    """Returns whether a node keeps its own result in this slot."""
    return slot.startswith(("result", "output"))


def has_event(trace: Trace, failure: Failure) -> bool:
    """Returns whether the failed call is among the events too, as a failed backward is."""
    near = (trace.event(failure.index - 1), trace.event(failure.index))
    return any(event.site == failure.site and getattr(event, "failed", False) for event in near if event is not None)


def _writes_of(event: Event) -> tuple[Write, ...]:
    if isinstance(event, Call):
        return event.writes
    if isinstance(event, Backward):
        return tuple(gradient.write for gradient in event.gradients if gradient.write is not None)
    return ()
