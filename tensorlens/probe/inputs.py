"""Fresh tensors to probe with: made again for every measurement, since a probe may write them."""

from __future__ import annotations

import difflib
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch

from tensorlens.compare.records import Input
from tensorlens.errors import UsageError

SHAPES = ((3, 2), (3, 3), (3,), (2, 3, 4), (1,), (), (1, 2, 6, 6), (2, 3, 4, 6, 6))  # tried until every operand runs

MANY = 10_000  # elements; beyond, the numbers do not matter but the time to make them does


@dataclass(slots=True)
class Subject:
    """The tensors of one measurement. The gradient of `x` is read at `leaf`, at `window` of it."""

    x: torch.Tensor
    y: torch.Tensor
    leaf: torch.Tensor | None  # None: x does not require grad
    window: slice | None  # x is this part of the leaf; None: all of it

    def gradient(self, full: torch.Tensor | None) -> torch.Tensor | None:
        """The part of the leaf's gradient that is x's."""
        return full if full is None or self.window is None else full[self.window]


def dtype_of(name: str) -> torch.dtype:
    """The torch dtype called `name`.

    Raises:
        UsageError: there is none.
    """
    found = getattr(torch, name.removeprefix("torch."), None)
    if isinstance(found, torch.dtype):
        return found
    known = [key for key in dir(torch) if isinstance(getattr(torch, key), torch.dtype)]
    near = difflib.get_close_matches(name, known, n=3)
    raise UsageError(f'no such dtype: "{name}"' + (f"; nearest: {', '.join(near)}" if near else ""))


def check_device(name: str) -> None:
    """See that tensors can be made on a device.

    Raises:
        UsageError: they can't.
    """
    try:
        torch.empty(1, device=name)
    except Exception as error:
        reason = str(error).splitlines()[0]
        raise UsageError(f'can\'t probe on the device "{name}": {reason}') from None


def differentiable(dtype: torch.dtype) -> bool:
    return dtype.is_floating_point or dtype.is_complex


def inputs_for(shape: tuple[int, ...], options: Mapping[str, Any]) -> list[Input]:
    """The main input, then one for each property that the user left open, differing in that property alone."""
    dtype = options.get("dtype") or "float32"
    fixed = {
        key: options[key] for key in ("requires_grad", "leaf", "contiguous", "view") if options.get(key) is not None
    }
    grad = fixed.get("requires_grad", differentiable(dtype_of(dtype)))
    main = Input("x", "x", shape, dtype, options.get("device") or "cpu", grad, not grad, True, False)
    main = replace(main, **fixed)
    if not main.requires_grad:
        main = replace(main, leaf=True)
    if main.requires_grad and not main.leaf:
        main = replace(main, label="a non-leaf x")
    variants = [main]
    if main.requires_grad and "leaf" not in fixed:
        variants.append(replace(main, id="leaf", label="a leaf x", leaf=True))
    if main.requires_grad and "requires_grad" not in fixed and fixed.get("leaf") is not False:
        variants.append(replace(main, id="no_grad", label="an x without grad", requires_grad=False, leaf=True))
    if "contiguous" not in fixed and any(size > 1 for size in shape):
        variants.append(replace(main, id="non_contiguous", label="a non-contiguous x", contiguous=False))
    if "view" not in fixed:
        variants.append(replace(main, id="view", label="an x that is a view", view=True))
    if not options.get("shape") and len(shape) > 1:
        variants.append(replace(main, id="size_one", label="x with a last dimension of 1", shape=(*shape[:-1], 1)))
    if not options.get("dtype"):
        variants.append(replace(main, id="float64", label="a float64 x", dtype="float64"))
    return variants


def enlarged(base: Input, size: int) -> Input:
    """The same input with about `size` elements, every dimension grown alike."""
    grown = [index for index, extent in enumerate(base.shape) if extent > 1]
    if not grown:
        return replace(base, shape=(size, *base.shape[1:]) if base.shape else ())
    factor = (size / math.prod(base.shape)) ** (1 / len(grown))
    shape = tuple(max(1, round(n * factor)) if index in grown else n for index, n in enumerate(base.shape))
    return replace(base, shape=shape)


def make(spec: Input) -> Subject:
    """Tensors as `spec` describes them."""
    dtype = dtype_of(spec.dtype)
    grad = spec.requires_grad and differentiable(dtype)
    whole = (spec.shape[0] + 1, *spec.shape[1:]) if spec.view and spec.shape else (2,) if spec.view else spec.shape
    window = slice(1, None) if spec.view and spec.shape else None
    numbers = _strided(_numbers(whole, dtype, spec.device), spec.contiguous)
    y = _numbers(spec.shape, dtype, spec.device, start=4).requires_grad_(grad)
    if not grad or spec.leaf:
        x = (numbers[1:] if spec.shape else numbers[1]) if spec.view else numbers
        x.requires_grad_(grad)
        return Subject(x, y, x if grad else None, None)
    leaf = numbers.requires_grad_()
    x = (
        leaf.clone()
        if spec.contiguous
        else torch.empty_strided(leaf.shape, leaf.stride(), dtype=dtype, device=leaf.device).copy_(leaf)
    )
    if spec.view:
        x = x[1:] if spec.shape else x[1]
    return Subject(x, y, leaf, window if spec.shape else slice(1, 2))


def _numbers(shape: tuple[int, ...], dtype: torch.dtype, device: str, start: int = 0) -> torch.Tensor:
    """0.1, 0.2, ... (1, 2, ... where there are no fractions): within the domain of most functions, short to print."""
    if math.prod(shape) > MANY:
        return torch.full(shape, 0.5 if differentiable(dtype) else 1, dtype=dtype, device=device)
    count = torch.arange(start, start + math.prod(shape), device=device) % 9 + 1
    if dtype == torch.bool:
        return (count % 2 == 1).reshape(shape).clone()
    values = count.to(torch.float64) / 10 if differentiable(dtype) else count
    return values.to(dtype).reshape(shape).clone()


def _strided(values: torch.Tensor, contiguous: bool) -> torch.Tensor:
    if contiguous or values.dim() == 0:
        return values
    if values.dim() == 1 or sum(size > 1 for size in values.shape) < 2:
        strides = [stride * 2 for stride in values.stride()]
    else:
        strides = list(reversed(torch.empty(values.shape[::-1], device="meta").stride()))
    return torch.empty_strided(values.shape, strides, dtype=values.dtype, device=values.device).copy_(values)
