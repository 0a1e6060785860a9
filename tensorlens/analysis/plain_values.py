"""Finds out whether plain values can have entered torch at a call, and whether values of a dtype have gradients."""

from __future__ import annotations

import ast

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.records.model import Call, Tensor

_MAKE_THEIR_VALUES = (
    "zeros",
    "ones",
    "empty",
    "eye",
    "rand",
    "randn",
    "randint",
    "randperm",
    "arange",
    "linspace",
    "logspace",
)  # their arguments are sizes and limits
_SHAPE_ONLY = (
    "zeros_like", "ones_like", "empty_like", "full_like", "rand_like", "randn_like", "randint_like",
    "new_zeros", "new_ones", "new_empty", "new_full", "new_tensor",
)  # fmt: skip
_OPTIONS = ("dtype", "device", "requires_grad", "generator")


def takes_values(facts: TraceIndex, call: Call) -> bool:
    """Returns whether a call without tensors as inputs can have been given values that were computed: `torch.tensor(x)`
    can, `torch.tensor(2.0)` and `torch.rand(3)` cannot."""
    if call.op.rpartition(".")[2] in _MAKE_THEIR_VALUES:
        return False
    node = facts.names.syntax.node(facts.trace.sites[call.site].span)
    if not isinstance(node, ast.Call):
        return True
    given = [*node.args, *(keyword.value for keyword in node.keywords if keyword.arg not in _OPTIONS)]
    return any(isinstance(part, ast.Name | ast.Attribute | ast.Call) for one in given for part in ast.walk(one))


def may_require_grad(tensor: Tensor) -> bool:
    """Returns whether a tensor's dtype has gradients: floating point, also `bfloat16`, and complex numbers."""
    return tensor.dtype.startswith(("float", "bfloat", "complex"))


def takes_shape_only(call: Call) -> bool:
    """Returns whether a call uses the shape of its input and none of its values, as `zeros_like()` does."""
    return call.op.rpartition(".")[2] in _SHAPE_ONLY


def takes_no_value(call: Call, source: int) -> bool:
    """Returns whether a call takes at most the shape, the dtype and the device of one of its inputs.

    `x.new_tensor(y)` and `x.new(y)` take none of the values of `x`, and those of `y`.
    """
    if not takes_shape_only(call) and call.op != "Tensor.new":
        return False
    inputs = [access.tensor for access in call.inputs]
    return inputs[:1] == [source] and source not in inputs[1:]
