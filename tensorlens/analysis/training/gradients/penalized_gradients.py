"""Finds the gradients whose norms a penalty compares with a number, as that of a critic does."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.loss_calls import ERRORS
from tensorlens.analysis.training.taken_norms import TakenNorm, taken_norm
from tensorlens.records.model import Call

_GRAD, _FUNCTION, VMAP = "autograd.grad", "func.grad", "func.vmap"
_FILLED_GRADIENT = "Tensor.grad.__get__"
_TRANSFORMS = frozenset((_FUNCTION, VMAP))
_FILLED = frozenset("ones ones_like full full_like new_ones new_full".split())
_RESHAPES = frozenset("view reshape flatten unflatten squeeze unsqueeze contiguous getitem stack".split())
_MAX_RESHAPES = 4
_MAX_EVENTS = 6  # between the end of a function and that of the transform that runs it


def compared_norm(facts: TraceIndex, call: Call) -> TakenNorm | None:
    """Returns the norm that a call subtracts a number from, or computes the error of for a number."""
    name = op_name(call)
    if name not in ("sub", "rsub", *ERRORS) or not call.inputs:
        return None
    number, *others = (access.tensor for access in call.inputs)
    if len(others) > 1 or not all(_is_constant(facts, each, call) for each in others):
        return None
    made = next(iter(facts.producers(number, call.index)), None)
    return None if made is None else taken_norm(facts, made)


def _is_constant(facts: TraceIndex, number: int, before: Call) -> bool:
    made = next(iter(facts.producers(number, before.index)), None)
    return made is not None and op_name(made) in _FILLED


def gradient_below(facts: TraceIndex, norm: TakenNorm) -> Call | None:
    """Returns the call that returned the gradient a norm is of, if it has the same samples."""
    number, before = norm.value, norm.read.index
    samples = facts.tensor(number).shape[:1]
    for _ in range(_MAX_RESHAPES):
        made = next(iter(facts.producers(number, before)), None)
        if made is None or not made.inputs:
            return None
        if made.op in (_GRAD, _FILLED_GRADIENT, *_TRANSFORMS):
            return made if facts.tensor(number).shape[:1] == samples and _has_shape(facts, made, number) else None
        if op_name(made) not in _RESHAPES or len(made.inputs) > 1:
            return None
        number, before = made.inputs[0].tensor, made.index
    return None


def _has_shape(facts: TraceIndex, made: Call, number: int) -> bool:
    """Returns whether a gradient has the shape of what is differentiated, or of the points."""
    own, asked = facts.tensor(number).shape, asked_gradient(facts, made)
    if asked is None:
        return any(facts.tensor(access.tensor).shape == own for access in made.inputs)
    shapes = [facts.tensor(access.tensor).shape for access in asked.outputs]
    return (own[1:] if made.op == VMAP else own) in shapes


def asked_gradient(facts: TraceIndex, made: Call) -> Call | None:
    """Returns the call that differentiates: `torch.func.grad()` runs one, and `torch.func.vmap()` may, one for each
    sample, as the last that it runs."""
    call: Call | None = made
    for op in (_FUNCTION, _GRAD) if made.op == VMAP else (_GRAD,) if made.op == _FUNCTION else ():
        call = None if call is None else next((c for c in _calls_before(facts, call)), None)
        if call is None or call.op != op:
            return None
    return call if call is not None and call.op == _GRAD else None


def points_of(facts: TraceIndex, made: Call) -> list[tuple[int, int]]:
    """Returns the tensors that a call may differentiate for, each with the event that reads it."""
    if made.op in (*_TRANSFORMS, _FILLED_GRADIENT):
        return [(access.tensor, made.index) for access in made.inputs]
    gradient = asked_gradient(facts, made)
    return [(access.tensor, gradient.index) for access in gradient.inputs[1:]] if gradient is not None else []


def _calls_before(facts: TraceIndex, call: Call) -> Iterator[Call]:
    """Yields the calls right before one, the last first."""
    events = (facts.event(index) for index in range(call.index - 1, max(call.index - _MAX_EVENTS, -1), -1))
    return (event for event in events if isinstance(event, Call))
