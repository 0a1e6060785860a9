"""Runs one operation on PyTorch's own sample inputs, in every way that it can be called, forward and backward."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import islice
from typing import Any

import torch

import tensorlens
from unchanged.observing import Lens, Observed, Outcome, attempt, compared, derive, facts, sharing, tensors_in, watched

DTYPES = (torch.float64, torch.float32, torch.complex128, torch.int64)
FIRST = "operations"
TWICE = "operations, backward through the backward"
Call = Callable[[Any], Any]


def _called(function: Any) -> Call:
    return lambda sample: function(sample.input, *sample.args, **sample.kwargs)


def _in_place(function: Any) -> Call:
    """Calls the in-place variant on a copy: a leaf that requires grad must not be changed in place."""
    return lambda sample: function(_copied(sample.input), *sample.args, **sample.kwargs)


def _copied(value: Any) -> Any:
    return value.clone() if isinstance(value, torch.Tensor) else [_copied(item) for item in value]


def _into_out(op: Any) -> Call:
    """Writes into tensors of the right size, and into empty ones, which are resized."""

    def call(sample: Any) -> Any:
        with torch.no_grad():
            result = op(sample.input, *sample.args, **sample.kwargs)
            single = isinstance(result, torch.Tensor)
            fitting = [torch.zeros_like(one) for one in tensors_in(result)]
            empty = [one.new_empty(0) for one in fitting]
            for out in (fitting, empty):
                op(sample.input, *sample.args, **sample.kwargs, out=out[0] if single else tuple(out))
        return [*fitting, *empty]

    return call


def _not_contiguous(op: Any) -> Call:
    def call(sample: Any) -> Any:
        strided = sample.noncontiguous()
        return [op(strided.input, *strided.args, **strided.kwargs), strided.input]

    return call


WAYS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Call]]] = {
    FIRST: (lambda op: op, _called),
    TWICE: (lambda op: op if op.supports_gradgrad else None, _called),
    "operations as methods": (lambda op: op.method_variant, _called),
    "operations as operators": (lambda op: op.operator_variant, _called),
    "operations in place": (lambda op: op.inplace_variant, _in_place),
    "operations in place as operators": (lambda op: op.inplace_operator_variant, _in_place),
    "operations with `out=`": (lambda op: op if op.supports_out else None, _into_out),
    "operations on tensors that are not contiguous": (lambda op: op, _not_contiguous),
}
"""Ways of calling an operation: what is called, None where the operation has no such way, and how."""


def has(op: Any, way: str) -> bool:
    return WAYS[way][0](op) is not None


def observe(call: Call, twice: bool, sample: Any, lens: Lens) -> Observed:
    """Runs the sample forward and backward inside `lens()`; reads everything outside."""
    inputs = list(tensors_in([sample.input, sample.args, sample.kwargs]))
    leaves = [tensor for tensor in inputs if tensor.is_leaf and tensor.requires_grad]
    seen: Observed = {}
    torch.manual_seed(5)
    with watched(seen), lens():
        result = attempt(lambda: call(sample), seen, "forward")
        outputs = list(tensors_in(result))
        first = attempt(lambda: derive(outputs, leaves, twice), seen, "backward") or []
    gradients = [leaf.grad for leaf in leaves if leaf.grad is not None]
    everything = inputs + outputs + gradients + first
    seen["sharing"] = sharing(everything)
    seen["kinds"] = (type(result), len(inputs), len(outputs), [leaf.grad is not None for leaf in leaves])
    with torch.no_grad():
        seen["tensors"] = [facts(tensor) for tensor in everything]
    seen["other"] = repr(result) if not outputs else None
    return seen


def samples(op: Any, dtype: torch.dtype, limit: int | None) -> list[Any]:
    """Returns sample inputs, the same at every call. `op.sample_inputs` would look through the stack for a test."""
    torch.manual_seed(3)
    wants_grad = op.supports_autograd and dtype.is_floating_point | dtype.is_complex
    return list(islice(op.sample_inputs_func(op, "cpu", dtype, wants_grad), limit))


def refused(op: Any) -> list[Any]:
    """Returns inputs that the operation must reject, the same at every call."""
    torch.manual_seed(3)
    return [] if op.error_inputs_func is None else [error.sample_input for error in op.error_inputs_func(op, "cpu")]


def compare(op: Any, dtype: torch.dtype, limit: int | None, lens: Lens = tensorlens.trace, way: str = FIRST) -> Outcome:
    """Calls an operation in one of `WAYS` that it has."""
    pick, how = WAYS[way]
    seen = partial(observe, how(pick(op)), way == TWICE)
    return compared(lambda: samples(op, dtype, limit), seen, f"{way}: {op.formatted_name} {dtype}", lens)


def compare_refused(op: Any, limit: int | None, lens: Lens = tensorlens.trace) -> Outcome:
    """Calls an operation on inputs that it must reject."""
    return compared(
        lambda: refused(op)[:limit], partial(observe, _called(op), False), f"refused: {op.formatted_name}", lens
    )
