"""Makes the tensors to probe with. Every measurement gets new ones, since a probe may write to them."""

from __future__ import annotations

import difflib
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import combinations
from typing import Any

import torch

from tensorlens.compare.comparison_records import Input, Layout
from tensorlens.compare.numbers import VALUES, flat, sizes_and_strides
from tensorlens.errors import UsageError

SHAPES = ((3, 2), (3, 3), (3,), (2, 3, 4), (1,), (), (1, 2, 6, 6), (2, 3, 4, 6, 6))  # tried until every operand runs

MANY = 10_000  # elements; a larger tensor repeats one number, so that it is made fast


@dataclass(slots=True)
class Subject:
    """The tensors of one measurement. `leaf` gets the gradient: it is x itself, or what x is computed from."""

    x: torch.Tensor
    y: torch.Tensor
    leaf: torch.Tensor | None  # None if x does not require grad


def dtype_of(name: str) -> torch.dtype:
    """Returns the torch dtype called `name`.

    Raises:
        UsageError: there is none.
    """
    dtype = getattr(torch, name.removeprefix("torch."), None)
    if isinstance(dtype, torch.dtype):
        return dtype
    known = [key for key in dir(torch) if isinstance(getattr(torch, key), torch.dtype)]
    near = difflib.get_close_matches(name, known, n=3)
    raise UsageError(f'no such dtype: "{name}"' + (f"; nearest: {', '.join(near)}" if near else ""))


def check_device(name: str) -> None:
    """Checks that tensors can be made on a device.

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


def inputs_for(shape: tuple[int, ...], options: Mapping[str, Any], cast: bool = False) -> list[Input]:
    """Returns the main input, then inputs that differ from it in one or two of the properties that the user left open.

    Pairs of changes separate properties that go together, as a leaf and no grad. `cast` says that an operand casts:
    then float64 is combined with the other changes too, since it may decide whether x itself comes back.
    """
    main = _main(shape, options)
    changes = _changes(main, options)
    by_id = {"x": main}
    for count in (1, 2):
        for names in combinations(changes, count):
            changed: dict[str, Any] = {}
            for name in names:
                changed |= changes[name]
            distinct = sum(len(changes[name]) for name in names) == len(changed)
            if distinct and _is_informative(names, cast) and possible(replace(main, **changed)):
                key = "+".join(names)
                labels = " and ".join(LABELS[name] for name in names)
                by_id[key] = replace(main, id=key, label=f"an x {labels}", **changed)
    return list(by_id.values())


def _is_informative(names: tuple[str, ...], cast: bool) -> bool:
    """Returns whether changes are worth an input. A change of the size is only paired with `no_grad`, and so is one of
    the dtype unless an operand casts."""
    if len(names) < 2 or "no_grad" in names:
        return True
    return not {"size_one", "several"} & set(names) and (cast or "float64" not in names)


LABELS = {
    "leaf": "that is a leaf",
    "no_grad": "without grad",
    "transposed": "that is transposed",
    "every_second": "of the form b[..., ::2]",
    "first_columns": "of the form b[..., :n], b being wider",
    "view": "that is a view",
    "size_one": "whose last dimension is 1",
    "several": "with several elements",
    "float64": "of float64",
}


def _main(shape: tuple[int, ...], options: Mapping[str, Any]) -> Input:
    dtype = options.get("dtype") or "float32"
    grad = options.get("requires_grad")
    grad = differentiable(dtype_of(dtype)) if grad is None else grad
    leaf = not grad or bool(options.get("leaf"))
    main = Input("x", "x", shape, dtype, options.get("device") or "cpu", grad, leaf)
    main = replace(main, view=bool(options.get("view")), values=options.get("values") or "signed")
    if options.get("contiguous") is False:
        layouts: tuple[Layout, ...] = ("transposed", "every_second")
        main = replace(
            main, layout=next((each for each in layouts if possible(replace(main, layout=each))), "contiguous")
        )
    return main


def _changes(main: Input, options: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Returns the changes that the user left open: name -> the fields of the main input that it replaces."""
    left_open = {
        key for key in ("requires_grad", "leaf", "contiguous", "view", "dtype", "shape") if options.get(key) is None
    }
    changes: dict[str, dict[str, Any]] = {}
    if main.requires_grad and "leaf" in left_open:
        changes["leaf"] = {"leaf": True, "requires_grad": True}
    if main.requires_grad and "requires_grad" in left_open and options.get("leaf") is not False:
        changes["no_grad"] = {"leaf": True, "requires_grad": False}
    if "contiguous" in left_open:
        for layout in ("transposed", "every_second", "first_columns"):
            changes[layout] = {"layout": layout}
    if "view" in left_open:
        changes["view"] = {"view": True}
    if "shape" in left_open and len(main.shape) > 1:
        changes["size_one"] = {"shape": (*main.shape[:-1], 1)}
    if "shape" in left_open and math.prod(main.shape) == 1:
        changes["several"] = {"shape": SHAPES[0]}
    if "dtype" in left_open:
        changes["float64"] = {"dtype": "float64"}
    return changes


def possible(spec: Input) -> bool:
    """Returns whether a tensor of this layout exists: a row, a column or a scalar can't be transposed."""
    large = [extent for extent in spec.shape if extent > 1]
    if spec.layout == "contiguous":
        return True
    if not large or spec.shape[-1] < 2:
        return False
    return spec.layout == "every_second" or len(large) > 1


def enlarged(base: Input, size: int) -> Input:
    """Returns the same input with about `size` elements; every dimension above 1 grows by the same factor."""
    grown = [index for index, extent in enumerate(base.shape) if extent > 1]
    if not grown:
        return replace(base, shape=(size, *base.shape[1:]) if base.shape else ())
    factor = (size / math.prod(base.shape)) ** (1 / len(grown))
    shape = tuple(max(1, round(n * factor)) if index in grown else n for index, n in enumerate(base.shape))
    return replace(base, shape=shape)


def make(spec: Input) -> Subject:
    """Makes tensors as `spec` describes them."""
    dtype = dtype_of(spec.dtype)
    grad = spec.requires_grad and differentiable(dtype)
    numbers, second = VALUES[spec.values]
    y, values = (_tensor(spec.shape, spec.dtype, spec.device, each) for each in (second, numbers))
    y.requires_grad_(grad)
    if not grad or spec.leaf:
        x = _laid_out(values, spec)
        x = x[1] if spec.view else x
        x.requires_grad_(grad)
        return Subject(x, y, x if grad else None)
    leaf = values.requires_grad_()
    if spec.contiguous and not spec.view:
        return Subject(leaf.clone(), y, leaf)
    with torch.no_grad():
        empty = _laid_out(leaf, spec)
    empty.copy_(torch.stack([leaf, leaf]) if spec.view else leaf)
    return Subject(empty[1] if spec.view else empty, y, leaf)


def _tensor(shape: tuple[int, ...], dtype: str, device: str, numbers: tuple[float, ...]) -> torch.Tensor:
    if math.prod(shape) > MANY:
        kind = dtype_of(dtype)
        return torch.full(shape, 0.5 if differentiable(kind) else 1, dtype=kind, device=device)
    return _small(shape, dtype, device, numbers).clone()


@lru_cache(maxsize=64)
def _small(shape: tuple[int, ...], dtype_name: str, device: str, numbers: tuple[float, ...]) -> torch.Tensor:
    dtype = dtype_of(dtype_name)
    values = torch.tensor(flat(shape, numbers), dtype=torch.float64, device="cpu")
    if dtype == torch.bool:
        values = (values > 0).to(torch.float64)
    elif not differentiable(dtype):
        values = (values * 2).trunc() if min(numbers) < 0 else (values * 8).ceil()
        values = values.abs() if dtype == torch.uint8 else values
    return values.to(dtype).reshape(shape).to(device)


def _laid_out(values: torch.Tensor, spec: Input) -> torch.Tensor:
    """Copies `values` to memory with the strides of the layout. For a view, the memory holds two tensors, and x is the
    second."""
    sizes, strides = sizes_and_strides(spec)
    return torch.empty_strided(sizes, strides, dtype=values.dtype, device=values.device).copy_(values.detach())
