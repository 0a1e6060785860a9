"""Measures the gradient that each term of a loss alone gives to the parameters, in a second run.

Before a chosen pass, the graph of its root is run once for each term: hooks set the gradients that arrive at the other
terms to zero. The sum of what the terms give must be the gradient of the root. If it is not, as where a term is
computed from another, nothing is written.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite, sqrt
from typing import Any

import torch

from tensorlens.journal.child_config import GradientColumns, LossTerms, Measurement
from tensorlens.records.training import TermGradient
from tensorlens.tracer.isolation.readable import is_measurable
from tensorlens.tracer.isolation.torch_originals import detach, numel
from tensorlens.tracer.recording.recorder import Recorder
from tensorlens.tracer.saved_tensors.graph import Node, nodes_of
from tensorlens.tracer.training.column_derivatives import ColumnDerivatives
from tensorlens.tracer.training.parameter_statistics import as_real, gradient_norms

MAX_NODES = 20_000
MAX_TERMS = 16
_TOLERANCE, _ROUGH = 1e-3, 2e-2  # of the difference, relative; with gradients of half precision
_engine: Any = torch.autograd.Variable._execution_engine
_Gradients = list[torch.Tensor | None]


class TermGradients:
    """The terms of a run's losses that are to be measured, and the columns of gradients."""

    def __init__(self, recorder: Recorder, wanted: Sequence[Measurement]) -> None:
        self._recorder = recorder
        self._wanted = {each.root: each.terms for each in wanted if isinstance(each, LossTerms)}
        self._columns = ColumnDerivatives(recorder, [each for each in wanted if isinstance(each, GradientColumns)])

    def begin_pass(self, roots: Sequence[torch.Tensor], inputs: Sequence[object]) -> None:
        """Measures the terms or the columns of a pass that begins, if it is one of the chosen."""
        self._columns.begin_pass(roots, inputs)
        node: Any = roots[0].grad_fn if len(roots) == 1 and numel(roots[0]) == 1 else None
        terms = None if node is None else self._wanted.pop(node._sequence_nr(), None)
        if terms is not None and len(terms) <= MAX_TERMS:
            devices = range(torch.cuda.device_count()) if torch.cuda.is_initialized() else ()
            with torch.random.fork_rng(devices=list(devices)):  # a node may draw random numbers
                self._measure(roots[0], node._sequence_nr(), terms)

    def _measure(self, root: torch.Tensor, number: int, terms: Sequence[Sequence[int]]) -> None:
        nodes = list(nodes_of([root], MAX_NODES))
        found = [getattr(node, "variable", None) for node in nodes]
        leaves = [leaf for leaf in found if isinstance(leaf, torch.Tensor) and is_measurable(leaf)]
        known = [each for each in leaves if self._recorder.tensor_ids.find(each) is not None]
        by_number = {node._sequence_nr(): node for node in nodes}
        if len(nodes) >= MAX_NODES or not known or any(each not in by_number for term in terms for each in term):
            return
        whole = _gradients(root, known, [])
        parts: list[_Gradients] = []
        for term in terms:
            others = {each for other in terms if other is not term for each in other} - set(term)
            parts.append(_gradients(root, known, [by_number[each] for each in others]))
        with torch.no_grad():
            norms = [_norms(part) for part in parts]
            if _add_up(whole, parts, norms):
                ids = tuple(map(self._recorder.tensor_ids.id_of, known))
                for term, values in zip(terms, norms, strict=True):
                    self._recorder.rows.write_fact(TermGradient, number, term[0], ids, tuple(values))


def _gradients(root: torch.Tensor, leaves: Sequence[torch.Tensor], zeroed: Sequence[Node]) -> _Gradients:
    """Returns the gradients of a root, without what flows through some nodes. The graph and `.grad` are unchanged."""
    handles = [node.register_prehook(_zeros) for node in zeroed]  # type: ignore[attr-defined]
    try:
        given = (torch.ones_like(root),)
        return list(_engine.run_backward((root,), given, True, False, tuple(leaves), True, accumulate_grad=False))
    finally:
        for handle in handles:
            handle.remove()


def _zeros(gradients: Sequence[torch.Tensor | None]) -> tuple[torch.Tensor | None, ...]:
    return tuple(None if each is None else torch.zeros_like(each) for each in gradients)


def _norms(gradients: _Gradients) -> list[float]:
    """Returns the L2 norm of each gradient; 0 if there is none."""
    found = [_dense(each) for each in gradients if each is not None]
    norms = iter(gradient_norms(found))
    return [0.0 if each is None else next(norms) for each in gradients]


def _dense(gradient: torch.Tensor) -> torch.Tensor:
    return detach(gradient if gradient.layout is torch.strided else gradient.to_dense())


def _add_up(whole: _Gradients, parts: Sequence[_Gradients], norms: Sequence[Sequence[float]]) -> bool:
    """Returns whether the gradients of the terms add up to that of the root, and are all finite."""
    total, rough = 0.0, False
    for place, gradient in enumerate(whole):
        own = [_dense(each) for part in parts if (each := part[place]) is not None]
        if gradient is None:
            if any(norms[term][place] for term in range(len(parts))):
                return False
            continue
        rough |= gradient.dtype in (torch.float16, torch.bfloat16)
        rest = as_real(_dense(gradient))
        for each in own:
            rest = rest - as_real(each)
        total += next(iter(gradient_norms([rest]))) ** 2
    scale = sum(sqrt(sum(value * value for value in term)) for term in norms)
    return isfinite(scale) and scale > 0 and sqrt(total) <= (_ROUGH if rough else _TOLERANCE) * scale
