"""Compares the gradients of the losses that two functions return."""

from __future__ import annotations

from collections.abc import Callable

import torch

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.parameters_without_gradient import ends_in
from tensorlens.analysis.training.timeline import training_of
from tensorlens.diagnostics.why.missing_reasons import path_end_reason
from tensorlens.diagnostics.why.subject import Subject
from tensorlens.records.model import Trace
from tensorlens.records.reference import CLOSE, COARSE, FLOOR
from tensorlens.testing.item_recording import ItemRecording
from tensorlens.testing.reference_tests import RandomState

_SHOWN = 4  # values
_WHICH = ("first", "second")
Gradients = dict[torch.Tensor, torch.Tensor | None]


def differing_gradients(
    first: Callable[[], torch.Tensor],
    second: Callable[[], torch.Tensor],
    rtol: float | None,
    recording: ItemRecording,
    trace_so_far: Callable[[], Trace],
) -> list[str]:
    """Runs both functions. Returns a text for each leaf with different gradients."""
    state = RandomState()
    one = _gradients_of(first, recording)
    state.restore()
    other = _gradients_of(second, recording)
    pairs = [(leaf, one.get(leaf), other.get(leaf)) for leaf in {**one, **other}]
    different = [pair for pair in pairs if _differ(pair[1], pair[2], rtol)]
    return _described(different, recording, trace_so_far()) if different else []


def _gradients_of(function: Callable[[], torch.Tensor], recording: ItemRecording) -> Gradients:
    """Runs backward from the loss of a function. Returns the gradient of each leaf, and restores `.grad`."""
    loss = function()
    if not isinstance(loss, torch.Tensor) or loss.numel() != 1:
        shape = f"a tensor of shape {tuple(loss.shape)}" if isinstance(loss, torch.Tensor) else type(loss).__name__
        raise TypeError(f"each function has to return a loss, a tensor with one element, not {shape}")
    leaves = _leaves_of(loss)
    if not leaves:
        return {}
    with recording.recorder.quiet():
        kept = [(leaf, leaf.grad) for leaf in leaves]
        for leaf in leaves:
            leaf.grad = None
    try:
        loss.backward()
        with recording.recorder.quiet():
            return {leaf: leaf.grad for leaf in leaves}
    finally:
        with recording.recorder.quiet():
            for leaf, gradient in kept:
                leaf.grad = gradient


def _leaves_of(loss: torch.Tensor) -> list[torch.Tensor]:
    """Returns the leaves that the graph of a loss leads to, in the order in which it does."""
    if loss.grad_fn is None:
        return [loss] if loss.requires_grad else []
    waiting, seen, leaves = [loss.grad_fn], {loss.grad_fn}, []
    for node in waiting:
        if isinstance(leaf := getattr(node, "variable", None), torch.Tensor):
            leaves.append(leaf)
        for following, _ in node.next_functions:
            if following is not None and following not in seen:
                seen.add(following)
                waiting.append(following)
    return leaves


def _differ(one: torch.Tensor | None, other: torch.Tensor | None, rtol: float | None) -> bool:
    if one is None or other is None:
        only = other if one is None else one
        return only is not None and bool(only.count_nonzero())
    if one.shape != other.shape or one.dtype != other.dtype:
        return True
    share = rtol if rtol is not None else CLOSE.get(str(one.dtype).removeprefix("torch."), COARSE)
    finite = other[torch.isfinite(other)]
    size = float(finite.abs().max()) if finite.numel() else 0.0
    return not torch.allclose(one, other, rtol=0.0, atol=share * (size + FLOOR), equal_nan=True)


def _described(
    different: list[tuple[torch.Tensor, torch.Tensor | None, torch.Tensor | None]],
    recording: ItemRecording,
    trace: Trace,
) -> list[str]:
    facts = TraceIndex(trace)
    ids, numbers = recording.recorder.tensor_ids, recording.reader.tensor_numbers
    found = []
    for leaf, *gradients in different:
        raw = ids.find(leaf)
        number = None if raw is None else numbers.get(raw)
        name = f"a leaf of shape {tuple(leaf.shape)}" if number is None else facts.names.quoted(number)
        place = _first_difference(*gradients)
        shown = " and ".join(
            f"{_values(gradient, place)} in the {which}" for which, gradient in zip(_WHICH, gradients, strict=True)
        )
        at = f" (from element {place})" if place else ""
        reasons = [
            _cut(facts, number, which - 2)
            for which, gradient in enumerate(gradients)
            if gradient is None and number is not None
        ]
        found.append("; ".join([f"{name}: {shown}{at}", *filter(None, reasons)]))
    return found


def _first_difference(one: torch.Tensor | None, other: torch.Tensor | None) -> int:
    """Returns the place in the flattened gradients from which values are shown: the first that differs."""
    if one is None or other is None or one.shape != other.shape:
        return 0
    off = (one.reshape(-1) != other.reshape(-1)).nonzero()
    place = int(off[0]) if off.numel() else 0
    return place if place >= _SHOWN else 0


def _values(gradient: torch.Tensor | None, place: int) -> str:
    if gradient is None:
        return "none"
    flat = gradient.detach().reshape(-1)
    values = [f"{value:.4g}" for value in flat[place : place + _SHOWN].tolist()]
    return f"[{', '.join([*values, *(['...'] if flat.numel() > place + _SHOWN else [])])}]"


def _cut(facts: TraceIndex, number: int, which: int) -> str:
    """Returns where the path of a leaf to one of the last two losses ends, if the trace shows it."""
    passes = [each for each in facts.backwards if not each.failed]
    if len(passes) < -which:
        return ""
    backward = passes[which]
    end = next((each for each in ends_in(training_of(facts), backward, {number})), None)
    return "" if end is None else path_end_reason(Subject(facts, number, ""), end).text
