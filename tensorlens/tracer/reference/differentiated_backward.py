"""Keeps the calls of custom Functions whose gradients the program differentiates again, and checks them at the end.

A call counts if its `backward` ran with `create_graph=True`, a later pass went through the gradient that it returned,
and this pass also computes the gradient of a parameter that an input of the call is computed from: what `backward`
takes for a constant is then missing in the gradient of the parameter.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import cast

import torch
from torch.autograd.graph import Node

from tensorlens.records.further_runs import ConstantInBackward
from tensorlens.tracer.recording.recorder import Recorder
from tensorlens.tracer.reference.backward_check import APPLICATIONS, BackwardCheck, is_ordinary, parameter_name
from tensorlens.tracer.reference.central_differences import Application, is_parameter
from tensorlens.tracer.reference.second_derivatives import Mismatch, Use, mismatch

Kind = type[torch.autograd.Function]
Gradients = tuple[torch.Tensor | None, ...]
_ARGUMENTS = "tensorlens arguments"  # a key of a node's metadata
_TRIES = 60  # calls of each class whose gradients have a graph
_NODES = 20_000  # of the graph of an input


class DifferentiatedBackward:
    """Keeps such calls of a run. `note_call` and `note_backward` are to be called while nothing is recorded."""

    def __init__(self, recorder: Recorder, check: BackwardCheck) -> None:
        self._recorder, self._check = recorder, check
        self._uses: dict[Kind, list[Use]] = {}
        self._tries = Counter[Kind]()

    def note_call(self, kind: Kind, args: tuple[object, ...], node: Node) -> None:
        """Leaves the arguments of a call at its node."""
        tensors = [value for value in args if isinstance(value, torch.Tensor)]
        is_checked = self._is_wanted(kind) and all(map(is_ordinary, args)) and self._check.is_users(kind)
        if is_checked and tensors and not any(isinstance(value, torch.nn.Module) or callable(value) for value in args):
            wanted = tuple(n for n, v in enumerate(args) if isinstance(v, torch.Tensor) and v.requires_grad)
            kept = tuple(v.detach() if isinstance(v, torch.Tensor) else v for v in args)
            _metadata(node)[_ARGUMENTS] = Application(kind, kept, wanted)

    def _is_wanted(self, kind: Kind) -> bool:
        return len(self._uses.get(kind, ())) < APPLICATIONS and self._tries[kind] < _TRIES

    def note_backward(self, node: Node, given: tuple[object, ...], returned: object) -> None:
        """Watches whether a later pass goes through the gradients that a `backward` returned with a graph."""
        application = _metadata(node).get(_ARGUMENTS)
        if not isinstance(application, Application) or not self._is_wanted(application.kind):
            return
        self._tries[application.kind] += 1
        gradients = returned if isinstance(returned, tuple) else (returned,)
        tensors = [n for n, value in enumerate(application.args) if isinstance(value, torch.Tensor)]
        edges = [edge for edge, _ in node.next_functions]
        if len(gradients) != len(application.args) or len(edges) != len(tensors):
            return
        leaves = {n: _leaves(edge) for n, edge in zip(tensors, edges, strict=True) if n in application.wanted}
        copies = tuple(v.clone() if isinstance(v, torch.Tensor) else v for v in application.args)
        use = Use(Application(application.kind, copies, application.wanted))
        for place in application.wanted:
            found = gradients[place]
            made = found.grad_fn if isinstance(found, torch.Tensor) else None
            if isinstance(found, torch.Tensor) and made is not None and not any(found is each for each in given):
                made.register_prehook(self._watching(use, place, found.output_nr, leaves))

    def _watching(self, use: Use, gradient: int, output: int, leaves: dict[int, list[Node]]) -> Callable[..., None]:
        """Makes a hook of the node that made a gradient, which runs in a pass that goes through it."""

        def watch(gradients: Gradients) -> None:
            with self._check.guard, self._recorder.quiet(), torch._C.DisableTorchFunction():
                of_it = gradients[output]
                if of_it is not None and of_it.count_nonzero():
                    reached = [n for n, each in leaves.items() if any(map(_is_computed, each))]
                    self._add(use, [(gradient, n) for n in reached])

        return watch

    def _add(self, use: Use, pairs: list[tuple[int, int]]) -> None:
        uses = self._uses.setdefault(use.application.kind, [])
        if pairs and not use.pairs and len(uses) < APPLICATIONS:
            uses.append(use)
        use.pairs.update(dict.fromkeys(pairs))

    def check(self) -> None:
        """Writes a row for each class whose second derivative misses a part."""
        names = [kind.__name__ for kind in self._uses]
        with self._recorder.aside(), torch.inference_mode(False), torch.enable_grad():
            for kind, uses in self._uses.items():
                found = next((each for each in map(mismatch, uses) if each is not None), None)
                if found is not None and names.count(kind.__name__) == 1:
                    self._write(kind, found)

    def _write(self, kind: Kind, found: Mismatch) -> None:
        gradient, argument = parameter_name(kind, found.gradient), parameter_name(kind, found.argument)
        values = found.derivatives, found.differences, found.slots, found.attributes
        self._recorder.rows.write_fact(ConstantInBackward, kind.__name__, gradient, argument, *values)


def _metadata(node: Node) -> dict[object, object]:
    return cast("dict[object, object]", node.metadata)  # a property, which PyTorch declares as a method


def _leaves(edge: Node | None) -> list[Node]:
    """Returns the nodes that add to the gradients of the leaves of a graph; [] if it is too large."""
    waiting, seen, found = [edge], {edge}, list[Node]()
    while waiting and len(seen) < _NODES:
        node = waiting.pop()
        if node is None:
            continue
        if hasattr(node, "variable"):
            found.append(node)
        more = {each for each, _ in node.next_functions} - seen
        seen |= more
        waiting += more
    return [] if waiting else found


def _is_computed(leaf: Node) -> bool:
    """Returns whether the pass that runs computes the gradient of a leaf that is a parameter, or that it is asked for.

    A pass of `backward()` also fills the gradients of other leaves, which may be of no use.
    """
    try:
        is_run = torch._C._will_engine_execute_node(leaf)
    except RuntimeError:  # `autograd.grad()` is asked for the gradient of this leaf
        return True
    return bool(is_run) and is_parameter(leaf.variable)  # type: ignore[attr-defined]
