"""Finds the recorded graph over the moments of a run: its nodes and edges, where paths end, what backward frees."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tensorlens.analysis.lineage import calls_reached_by, reads_gradient
from tensorlens.analysis.moments.run_moments import Moments
from tensorlens.analysis.plain_values import takes_shape_only
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.records.model import Call


@dataclass(frozen=True, slots=True)
class GraphNode:
    """A call that recorded nodes: `name` is the grad_fn of its first result that has one."""

    at: int
    tensor: int
    name: str


@dataclass(frozen=True, slots=True)
class GraphEdge:
    """A call at moment `to` used `tensor`, which the call at moment `source` made; None: it is a leaf."""

    to: int
    tensor: int
    source: int | None


@dataclass(frozen=True, slots=True)
class GraphEnd:
    """A call at moment `to` used `tensor`, which did not require grad: no path goes further there."""

    to: int
    tensor: int


@dataclass(frozen=True, slots=True)
class GraphCut:
    """A call whose input required grad and whose results do not. `switch` is the site that turned recording off."""

    at: int
    tensor: int
    result: int | None
    mode: str
    switch: int | None


@dataclass(frozen=True, slots=True)
class Freed:
    """A backward pass at a moment, and the nodes that it freed, by the moments of their calls."""

    at: int
    nodes: tuple[int, ...]


def graph_nodes(facts: TraceIndex, moments: Moments) -> Iterator[GraphNode]:
    """Yields the calls that recorded nodes, in order."""
    for at, call in _calls(moments):
        made = next((s for s in call.states if s.node is not None and call.nodes[0] <= s.node < call.nodes[1]), None)
        if made is not None:
            yield GraphNode(at, made.tensor, made.grad_fn or "")


def graph_edges(facts: TraceIndex, moments: Moments, nodes: set[int]) -> Iterator[GraphEdge]:
    """Yields the edges between calls that recorded nodes, and those from leaves that require grad."""
    for at, call in _calls(moments):
        if at not in nodes:
            continue
        for tensor in dict.fromkeys(access.tensor for access in call.inputs):
            state = facts.states.state_before(tensor, call.index) or facts.state(tensor, call.index)
            if state is None or not state.requires_grad:
                continue
            if state.is_leaf:
                yield GraphEdge(at, tensor, None)
                continue
            made = facts.call_of_node(state.node, call.index, state.grad_fn)
            source = None if made is None else moments.of_event(made.index)
            if source is not None and source in nodes:
                yield GraphEdge(at, tensor, source)


def graph_ends(facts: TraceIndex, moments: Moments, nodes: set[int]) -> Iterator[GraphEnd]:
    """Yields the inputs of recorded calls that did not require grad when they were used."""
    for at, call in _calls(moments):
        if at not in nodes:
            continue
        for tensor in dict.fromkeys(access.tensor for access in call.inputs):
            state = facts.states.state_before(tensor, call.index)
            if state is not None and not state.requires_grad:
                yield GraphEnd(at, tensor)


def graph_cuts(facts: TraceIndex, moments: Moments) -> Iterator[GraphCut]:
    """Yields the calls at which a value lost its history. What an optimizer computes is not among them."""
    for at, call in _calls(moments):
        if call.within or reads_gradient(call) or takes_shape_only(call) or call.nodes[0] != call.nodes[1]:
            continue
        outputs = [access.tensor for access in call.outputs]
        if any(facts.requires_grad(tensor, call.index) for tensor in outputs):
            continue
        written = {write.tensor for write in call.writes}
        lost = [
            access.tensor
            for access in call.inputs
            if access.tensor not in written and _required_grad(facts, access.tensor, call.index)
        ]
        if lost and (outputs or call.op.endswith((".item", ".tolist", ".numpy", "__array__"))):
            switch = None if call.mode == "grad" else facts.mode_switch(call.index)
            site = None if switch is None else switch.site
            yield GraphCut(at, lost[0], outputs[0] if outputs else None, call.mode, site)


def _required_grad(facts: TraceIndex, tensor: int, index: int) -> bool:
    state = facts.states.state_before(tensor, index)
    return state is not None and state.requires_grad


def freed(facts: TraceIndex, moments: Moments) -> Iterator[Freed]:
    """Yields the passes that freed what they went through."""
    for backward in facts.backwards:
        at = moments.of_event(backward.index)
        if at is None or backward.failed or backward.retain_graph or backward.create_graph:
            continue
        reached = (moments.of_event(index) for index in calls_reached_by(facts, backward).calls)
        yield Freed(at, tuple(sorted(place for place in reached if place is not None)))


def _calls(moments: Moments) -> Iterator[tuple[int, Call]]:
    for at, moment in enumerate(moments.items):
        if isinstance(moment.what, Call):
            yield at, moment.what
