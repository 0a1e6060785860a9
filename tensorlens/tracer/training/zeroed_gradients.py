"""Finds the operation behind a gradient of zeros: its node gets a gradient with other values, and passes zeros on.

The nodes of a pass get hooks for it, in a few passes of a run that found such a gradient before. A hook of a node only
looks at what the engine computes.
"""

from __future__ import annotations

import weakref
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from operator import itemgetter

import torch

from tensorlens.records.training import ZeroedGradient
from tensorlens.tracer.isolation.muted_dispatch import MutedDispatch
from tensorlens.tracer.isolation.readable import is_measurable
from tensorlens.tracer.isolation.torch_originals import some
from tensorlens.tracer.recording.recorder import Recorder
from tensorlens.tracer.saved_tensors.graph import LEAF_SEQUENCE, MAX_NODES, Node, leaves_below, whole_graph

NOT_SEARCHED = f"a graph has more than {MAX_NODES:,} nodes: which of them makes a gradient zero was not searched"
MAX_PASSES = 3  # that are searched for one leaf
MAX_FOUND = 3  # nodes of one leaf
_Edge = tuple[Node, Node]  # the node that passed zeros on, and the next one


class ZeroedGradients:
    """The leaves of a run whose gradients consist of zeros, and the nodes that made them so."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._searched: dict[int, int] = {}  # leaf -> passes searched
        self._wanted: dict[int, weakref.ref[torch.Tensor]] = {}
        self._found: set[int] = set()

    def want(self, leaf: int, ref: weakref.ref[torch.Tensor]) -> None:
        """Searches later passes for the node behind the zeros of a leaf."""
        if leaf not in self._found and self._searched.get(leaf, 0) < MAX_PASSES:
            self._wanted[leaf] = ref

    def unwant(self, leaf: int) -> None:
        """Searches no more for a leaf that has got another gradient."""
        self._wanted.pop(leaf, None)

    def begin_pass(self, roots: Sequence[torch.Tensor]) -> Callable[[], None] | None:
        """Adds the hooks. Returns a function that removes them when the pass has ended, and writes what they found."""
        if not self._wanted:
            return None
        nodes = whole_graph(roots)
        if nodes is None:
            self._recorder.gap(NOT_SEARCHED)
            self._count_pass()
            return None
        edges: list[_Edge] = []
        handles = [node.register_hook(self._hook(node, edges)) for node in nodes if node._sequence_nr() < LEAF_SEQUENCE]

        def end() -> None:
            for handle in handles:
                handle.remove()
            self._note(edges)

        return end

    def _hook(self, node: Node, edges: list[_Edge]) -> Callable[[object, object], None]:
        def look(passed_on: object, received: object) -> None:
            try:
                with torch._C.DisableTorchFunction(), MutedDispatch(), self._recorder.quiet(), torch.no_grad():
                    edges.extend(list(_zeroed(node, passed_on, received)))  # at once: other threads add theirs
            except Exception as error:  # ours: the pass of the program goes on
                self._recorder.internal_error("a gradient of zeros", error)

        return look

    def _note(self, edges: list[_Edge]) -> None:
        """Writes the nodes from which a wanted leaf is reached along the edge that carries zeros."""
        left = {leaf: MAX_FOUND for leaf, ref in self._wanted.items() if _has_zeros(ref())}
        find, visits = self._recorder.tensor_ids.find, Counter[Node]()
        for node, following in groupby(edges, key=itemgetter(0)):  # no leaf needs more nodes than `MAX_FOUND`
            for variable in leaves_below(map(itemgetter(1), following), _next_nodes, visits, MAX_FOUND):
                leaf = find(variable)
                if leaf is not None and left.get(leaf, 0):
                    left[leaf] -= 1
                    self._found.add(leaf)
                    self._recorder.rows.write_fact(ZeroedGradient, leaf, node.name(), node._sequence_nr())
        self._count_pass()

    def _count_pass(self) -> None:
        """Counts a pass for the wanted leaves, and wants no more those that are found or had enough passes."""
        for leaf in self._wanted:
            self._searched[leaf] = self._searched.get(leaf, 0) + 1
        waiting = [n for n in self._wanted if n not in self._found and self._searched[n] < MAX_PASSES]
        self._wanted = {leaf: self._wanted[leaf] for leaf in waiting}


def _next_nodes(node: Node) -> Iterable[Node | None]:
    return map(itemgetter(0), node.next_functions)


def _has_zeros(leaf: torch.Tensor | None) -> bool:
    """Returns whether a pass has left only zeros in a leaf's gradient. Else something after it makes them."""
    gradient = None if leaf is None or not leaf.is_leaf else leaf.grad
    return gradient is not None and is_measurable(gradient) and not bool(some(gradient))


def _zeroed(node: Node, passed_on: object, received: object) -> Iterable[_Edge]:
    """Yields the edges along which a node passed only zeros on, although it received other values."""
    tensors = [one for one in received if isinstance(one, torch.Tensor)] if isinstance(received, tuple) else []
    if not isinstance(passed_on, tuple) or not all(map(is_measurable, tensors)):
        return
    if not any(bool(some(one)) for one in tensors):
        return
    for gradient, (following, _) in zip(passed_on, node.next_functions, strict=False):
        if following is None or not isinstance(gradient, torch.Tensor) or not is_measurable(gradient):
            continue
        if not bool(some(gradient)):
            yield node, following
