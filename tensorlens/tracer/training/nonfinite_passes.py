"""Finds the first node of a backward pass that gets a finite gradient and passes one on that is not finite."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import torch

from tensorlens.records.training import FirstNonfinite
from tensorlens.tracer.isolation.muted_dispatch import MutedDispatch
from tensorlens.tracer.isolation.torch_originals import detach
from tensorlens.tracer.recording.recorder import Recorder
from tensorlens.tracer.saved_tensors.graph import LEAF_SEQUENCE, Node, nodes_of
from tensorlens.tracer.training.nonfinite_origin import Origin, Origins, earliest, place_in, saved_operands
from tensorlens.tracer.training.nonfinite_seen import is_finite, is_float

MAX_NODES = 20_000
MAX_FOUND = 32  # nodes of one pass


@dataclass(frozen=True, slots=True)
class _Found:
    """A node from which on gradients are not finite, and the node that gets the first of these."""

    following: Node
    origin: Origin


class SearchedPasses:
    """The backward passes of a run, and the origins of the gradients that are not finite."""

    def __init__(
        self,
        recorder: Recorder,
        origins: Origins,
        make: Callable[..., Origin],
        place_of_node: Callable[[int], tuple[str, int | None] | None],
    ) -> None:
        self._recorder, self._origins = recorder, origins
        self._make, self._place_of_node = make, place_of_node
        self._leaves: dict[int, Origin] = {}
        self._found: list[_Found] = []
        self._odd: dict[Node, list[Node]] = {}  # a node -> those that it passed something on to that is not finite

    def of_leaf(self, number: int) -> Origin | None:
        """Returns the origin of what is not finite in the gradient of a leaf."""
        return self._leaves.get(number)

    def begin(self, roots: Sequence[torch.Tensor]) -> Callable[[], None]:
        """Adds hooks to the nodes of a pass. Returns a function that removes them when it has ended."""
        self._found, self._odd = [], {}
        for number in list(self._leaves):
            gradient = self._gradient(number)
            if gradient is None or is_finite(gradient):
                del self._leaves[number]
        nodes = islice(nodes_of(roots), MAX_NODES)
        handles = [node.register_hook(self._hook(node)) for node in nodes if node._sequence_nr() < LEAF_SEQUENCE]

        def end() -> None:
            for handle in handles:
                handle.remove()
            with torch.no_grad():
                self._note()

        return end

    def note_returned(self, gradients: Iterable[torch.Tensor]) -> None:
        """Gives the gradients that a pass returned an origin, if they are not finite."""
        for gradient in gradients:
            if self._found and not is_finite(gradient):
                self._origins.put(gradient, earliest([found.origin for found in self._found]))

    def _gradient(self, number: int) -> torch.Tensor | None:
        ref = self._recorder.leaves.get(number)
        leaf = None if ref is None else ref()
        gradient = None if leaf is None else leaf.grad
        return detach(gradient) if gradient is not None and is_float(gradient) else None

    def _hook(self, node: Node) -> Callable[[object, object], None]:
        def look(passed_on: object, received: object) -> None:
            try:
                with torch._C.DisableTorchFunction(), MutedDispatch(), self._recorder.quiet(), torch.no_grad():
                    self._found.extend(self._look(node, passed_on, received))
            except Exception as error:  # ours: the pass of the program goes on
                self._recorder.internal_error("a gradient that is not finite", error)

        return look

    def _look(self, node: Node, passed_on: object, received: object) -> Iterator[_Found]:
        """Yields where a node passes on what is not finite, although it received finite values."""
        pairs = zip(passed_on, node.next_functions, strict=False) if isinstance(passed_on, tuple) else ()
        edges = [(detach(one), to) for one, (to, _) in pairs if to is not None and is_float(one) and not is_finite(one)]
        if edges:
            self._odd[node] = [following for _, following in edges]
        if len(self._found) >= MAX_FOUND:
            return
        given = [one for one in received if is_float(one)] if isinstance(received, tuple) else []
        odd = [detach(one) for one in given if not is_finite(one)]
        if odd:
            if not self._found:  # no node made it
                yield _Found(node, self._origins.of(odd[0]) or self._of_node("sum", node, place_in(odd[0])))
            return
        own: Origin | None = None  # one for all inputs of the node
        for gradient, following in edges:
            origin = self._origins.of(gradient) or own  # a custom Function: a call in its `backward`
            if origin is None:
                place = place_in(gradient)
                place |= saved_operands(node, gradient, received, place["position"])
                origin = own = self._of_node("backward", node, place)
            yield _Found(following, origin)

    def _of_node(self, kind: str, node: Node, fields: dict[str, Any]) -> Origin:
        op, site = self._place_of_node(node._sequence_nr()) or (node.name(), None)
        return self._make(FirstNonfinite(0, kind, op=op, node=node.name(), site=site, **fields))

    def _note(self) -> None:
        """Notes the leaves that the pass has given a gradient that is not finite."""
        origins: dict[int, list[Origin]] = {}
        for found in self._found:
            for number in self._leaves_below(found.following):
                origins.setdefault(number, []).append(found.origin)
        for number, made in origins.items():
            gradient = None if number in self._leaves else self._gradient(number)
            if gradient is not None and not is_finite(gradient):
                self._leaves[number] = earliest(made)
                self._origins.put(gradient, self._leaves[number])

    def _leaves_below(self, node: Node) -> Iterator[int]:
        """Yields the leaves that a node has passed something on to, directly or not, that is not finite."""
        queue, seen = deque([node]), {node}
        while queue:
            each = queue.popleft()
            leaf = getattr(each, "variable", None)
            if isinstance(leaf, torch.Tensor):
                number = self._recorder.tensor_ids.find(leaf)
                if number is not None:
                    yield number
            for following in self._odd.get(each, ()):
                if following not in seen:
                    seen.add(following)
                    queue.append(following)
