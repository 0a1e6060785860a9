"""Measures the derivatives of each column of a gradient, in a second run.

Before a chosen pass, which differentiates the sum of all columns, the graph of its root is run once for each column: a
hook sets the gradients that arrive at the other columns to zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from typing import Any

import torch

from tensorlens.journal.child_config import GradientColumns
from tensorlens.records import graph_values
from tensorlens.tracer.isolation.readable import is_measurable
from tensorlens.tracer.isolation.torch_originals import detach, numel
from tensorlens.tracer.recording.recorder import Recorder
from tensorlens.tracer.training.parameter_statistics import gradient_norms

_engine: Any = torch.autograd.Variable._execution_engine
_SUM = "SumBackward0"


class ColumnDerivatives:
    """The gradients of a run whose columns are to be differentiated."""

    def __init__(self, recorder: Recorder, wanted: Sequence[GradientColumns]) -> None:
        self._recorder = recorder
        self._wanted = list(wanted)

    def begin_pass(self, roots: Sequence[torch.Tensor], inputs: Sequence[object]) -> None:
        """Measures the columns of a pass that begins, if it is one of the chosen."""
        node: Any = roots[0].grad_fn if self._wanted and len(roots) == len(inputs) == 1 else None
        number = -1 if node is None else node._sequence_nr()
        chosen = next((each for each in self._wanted if each.roots[0] <= number < each.roots[1]), None)
        given = inputs[0] if chosen is not None else None
        if chosen is None or not isinstance(given, torch.Tensor) or not is_measurable(given) or given.dim() != 2:
            return
        if (numel(roots[0]) == 1 and node.name() == _SUM) or roots[0].shape == given.shape:
            self._wanted.remove(chosen)
            devices = range(torch.cuda.device_count()) if torch.cuda.is_initialized() else ()
            with torch.random.fork_rng(devices=list(devices)):  # a node may draw random numbers
                self._measure(roots[0], node, number, given)

    def _measure(self, root: torch.Tensor, node: Any, number: int, given: torch.Tensor) -> None:
        columns = range(given.shape[1])
        rows = [_derivatives(root, node, given, column) for column in columns]
        if not all(map(is_measurable, rows)):
            return
        with torch.no_grad():
            whole = torch.stack(rows).sum(0)
            own = [rows[column][:, column] for column in columns]
            rest = [whole[:, column] - own[column] for column in columns]
            norms = list(gradient_norms([*own, *rest]))
        if all(map(isfinite, norms)):
            parts = tuple(norms[: len(own)]), tuple(norms[len(own) :])
            self._recorder.rows.write_fact(graph_values.ColumnDerivatives, number, *parts)


def _derivatives(root: torch.Tensor, node: Any, given: torch.Tensor, column: int) -> torch.Tensor:
    """Returns the derivatives of the sum of one column. The graph and `.grad` are unchanged."""
    mask = torch.zeros_like(given, requires_grad=False)
    mask[:, column] = 1
    if root.shape == given.shape:
        return _run(root, mask, given)
    below, place = node.next_functions[0]

    def keep(gradients: tuple[torch.Tensor | None, ...]) -> tuple[torch.Tensor | None, ...]:
        return tuple(each * mask if each is not None and at == place else each for at, each in enumerate(gradients))

    handle = below.register_prehook(keep)
    try:
        return _run(root, torch.ones_like(root), given)
    finally:
        handle.remove()


def _run(root: torch.Tensor, weights: torch.Tensor, given: torch.Tensor) -> torch.Tensor:
    (found,) = _engine.run_backward((root,), (weights,), True, False, (given,), True, accumulate_grad=False)
    return torch.zeros_like(given) if found is None else detach(found)
