"""Finds the first node of a backward pass that gets a finite gradient and passes one on that is not finite."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import torch

from tensorlens.records.training import FirstNonfinite
from tensorlens.tracer.isolation.muted_dispatch import MutedDispatch
from tensorlens.tracer.isolation.torch_originals import detach
from tensorlens.tracer.recording.recorder import Recorder
from tensorlens.tracer.saved_tensors.graph import LEAF_SEQUENCE, MAX_NODES, Node, leaves_below, whole_graph
from tensorlens.tracer.training.nonfinite_origin import Origin, Origins, earliest, place_in, rank, saved_operands
from tensorlens.tracer.training.nonfinite_seen import is_finite, is_float

TOO_LARGE = f"a graph of more than {MAX_NODES:,} nodes is not searched"
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
        self._unsearched: Origin | None = None  # of all that is not finite after a pass whose nodes have no hooks
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
        nodes = whole_graph(roots)
        self._unsearched = None if nodes is not None else self._make(FirstNonfinite(0, "", TOO_LARGE))
        if nodes is None:
            return self._note_unsearched
        handles = [node.register_hook(self._hook(node)) for node in nodes if node._sequence_nr() < LEAF_SEQUENCE]

        def end() -> None:
            for handle in handles:
                handle.remove()
            self._note()

        return end

    def note_returned(self, gradients: Iterable[torch.Tensor]) -> None:
        """Gives the gradients that a pass returned an origin, if they are not finite."""
        for gradient in gradients:
            if (self._found or self._unsearched) and not is_finite(gradient):
                found = self._unsearched or earliest([found.origin for found in self._found])
                self._origins.put(gradient, found)

    def _note_unsearched(self) -> None:
        """Notes the leaves with a gradient that is not finite after a pass whose nodes have no hooks."""
        if self._unsearched is not None:
            self._put(dict.fromkeys(self._recorder.leaves, self._unsearched))

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
        found = sorted(self._found, key=_rank)
        for number, origin in (*self._reached(found, _origin, 1), *self._reached(found, _rank, 2)):
            origins.setdefault(number, []).append(origin)
        self._put({number: earliest(made) for number, made in origins.items()})

    def _put(self, origins: dict[int, Origin]) -> None:
        """Gives leaves an origin: those whose gradients are not finite, and have none yet."""
        with torch.no_grad():
            for number, origin in origins.items():
                gradient = None if number in self._leaves else self._gradient(number)
                if gradient is not None and not is_finite(gradient):
                    self._leaves[number] = origin
                    self._origins.put(gradient, origin)

    def _reached(self, found: list[_Found], key: Callable[[_Found], object], most: int) -> Iterator[tuple[int, Origin]]:
        """Yields the leaves below what was found, each with the first `most` origins, one for each `key`."""
        visits: Counter[Node] = Counter()
        for _, group in groupby(found, key=key):
            same = list(group)
            starts = [each.following for each in same]
            for leaf in leaves_below(starts, lambda node: self._odd.get(node, ()), visits, most):
                number = self._recorder.tensor_ids.find(leaf)
                if number is not None:
                    yield number, same[0].origin


def _origin(found: _Found) -> Origin:
    return found.origin


def _rank(found: _Found) -> tuple[bool, int]:
    return rank(found.origin)
