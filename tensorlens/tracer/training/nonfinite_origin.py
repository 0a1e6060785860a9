"""Describes where a result is not finite: its first such element, and what the operation was given there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from math import isfinite
from math import isnan as isnan_of
from numbers import Complex
from typing import Any

import torch

from tensorlens.records.training import FirstNonfinite
from tensorlens.tracer.isolation.readable import is_measurable
from tensorlens.tracer.isolation.torch_features import StorageReference, refer_to
from tensorlens.tracer.isolation.torch_originals import (
    detach,
    element_size,
    every,
    is_complex,
    isnan,
    numel,
    reshape,
    some,
    tolist,
    total,
    untyped_storage,
)
from tensorlens.tracer.isolation.torch_originals import isfinite as finite
from tensorlens.tracer.saved_tensors.graph import Node, data_of, raw_saved_of
from tensorlens.tracer.training.nonfinite_seen import is_float, kind_of

NAN = "nan"
MOST_STORAGES = 20_000
_MOST_OPERANDS = 3
_ALIASES = {"truediv": "true_divide", "rtruediv": "true_divide", "rdiv": "true_divide", "idiv": "true_divide",
            "itruediv": "true_divide", "rpow": "pow", "ipow": "pow", "rsub": "sub", "isub": "sub", "radd": "add",
            "iadd": "add", "rmul": "mul", "imul": "mul"}  # fmt: skip
_CONVERSIONS = {"to", "half", "bfloat16", "float", "double", "type", "type_as"}


@dataclass(frozen=True, slots=True)
class Origin:
    """The operation that made something that is not finite. `order` grows in the order of the calls."""

    order: int
    fact: FirstNonfinite


def rank(origin: Origin) -> tuple[bool, int]:
    """Orders origins by time. Values that the script gives itself are after all others."""
    return origin.fact.kind == "constant", origin.order


def earliest(origins: Sequence[Origin]) -> Origin:
    """Returns the earliest of some origins, of the values that the script gives only if there is no other."""
    first = min(origins, key=rank)
    if len({each.order for each in origins}) == 1:
        return first
    return replace(first, fact=replace(first.fact, mixed=True))


class Origins:
    """Remembers, for the memory of tensors with infinities or NaN, which operation these come from."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[StorageReference, Origin]] = {}

    def of(self, tensor: torch.Tensor) -> Origin | None:
        storage = untyped_storage(tensor)
        reference, origin = self._known.get(storage._cdata, (None, None))
        known = None if reference is None else reference()
        return origin if known is not None and known._cdata == storage._cdata else None

    def put(self, tensor: torch.Tensor, origin: Origin) -> None:
        if len(self._known) > MOST_STORAGES:
            self._known = {key: entry for key, entry in self._known.items() if entry[0]() is not None}
        storage = untyped_storage(tensor)
        known = self.of(tensor)
        if known is not None and not _covers(tensor, storage):
            origin = earliest([known, origin])
        self._known[storage._cdata] = refer_to(storage), origin

    def forget(self, tensor: torch.Tensor) -> None:
        """Forgets what is known of a tensor's memory, if all of it is finite now."""
        storage = untyped_storage(tensor)
        if storage._cdata in self._known and _covers(tensor, storage):
            del self._known[storage._cdata]

    def clear(self) -> None:
        self._known.clear()


def _covers(tensor: torch.Tensor, storage: torch.UntypedStorage) -> bool:
    """Returns whether a tensor has all of its memory."""
    return storage.nbytes() == numel(tensor) * element_size(tensor)


def nonfinite_numbers(value: object, depth: int = 5) -> set[str]:
    """Returns which of "nan" and "inf" there are among the plain numbers in the arguments of a call."""
    if isinstance(value, list | tuple | dict) and depth:
        items = value.values() if isinstance(value, dict) else value
        return set().union(*(nonfinite_numbers(each, depth - 1) for each in items))
    if isinstance(value, bool | int) or not isinstance(value, Complex):
        return set()
    parts = complex(value)
    return {NAN if isnan_of(part) else "inf" for part in (parts.real, parts.imag) if not isfinite(part)}


def plain_numbers(name: str, args: Sequence[object], tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """Returns the number in a pointwise operation on a tensor and a number, as a tensor."""
    numbers = [each for each in args if isinstance(each, int | float) and not isinstance(each, bool)]
    if not is_elementwise(name) or len(args) != 2 or len(tensors) != 1 or len(numbers) != 1:
        return []
    return [torch.full((), float(numbers[0]), dtype=torch.float64)]


@cache
def is_elementwise(name: str) -> bool:
    """Returns whether PyTorch calls an operation pointwise: a result's element depends on those at its place."""
    plain = name.rpartition(".")[2].strip("_")
    if plain in _CONVERSIONS:
        return True
    packet = getattr(torch.ops.aten, _ALIASES.get(plain, plain), None)
    overloads = [] if packet is None else [getattr(packet, each) for each in packet.overloads()]
    return bool(overloads) and any(torch.Tag.pointwise in each.tags for each in overloads)


def own_elements(result: torch.Tensor, inputs: Sequence[torch.Tensor]) -> torch.Tensor:
    """Returns a mask of the elements of a pointwise result that are not finite although every input is, there."""
    bad = ~finite(result)
    for tensor in inputs:
        if is_float(tensor):
            bad = bad & finite(tensor).expand(result.shape)
    return bad


def place_in(tensor: torch.Tensor, bad: torch.Tensor | None = None) -> dict[str, Any]:
    """Returns fields that describe the elements of a tensor that are not finite: with `bad`, an element of these."""
    nan = isnan(tensor)
    wanted = ~finite(tensor) if bad is None else bad
    wanted = wanted & nan if bool(some(wanted & nan)) else wanted
    flat = reshape(wanted, (-1,))
    first = int(flat.to(torch.uint8).argmax()) if numel(flat) else 0
    position = unraveled(first, tensor.shape)
    return {
        "value": kind_of(tensor[position]),
        "shape": tuple(tensor.shape),
        "count": int(total(~finite(tensor))),
        "position": position,
    }


def unraveled(place: int, shape: Sequence[int]) -> tuple[int, ...]:
    """Returns the index of the element at a place of a flattened tensor."""
    position: list[int] = []
    for size in reversed(shape):
        position.insert(0, place % size)
        place //= size
    return tuple(position)


def operands(
    name: str, result: torch.Tensor, inputs: Sequence[torch.Tensor], position: tuple[int, ...]
) -> dict[str, Any]:
    """Returns fields that say what an operation was given where its result is not finite."""
    if is_elementwise(name) and all(_fits(tensor, result) for tensor in inputs):
        return {"scope": "element", "operands": tuple(_at(each, position) for each in inputs[:_MOST_OPERANDS])}
    floats = [tensor for tensor in inputs if is_float(tensor)]
    if any(numel(tensor) == 0 for tensor in floats):
        return {"scope": "empty"}
    if len(floats) == 1 and floats[0].shape == result.shape:
        for dimension in reversed(range(result.dim())):
            found = _uniform(floats[0], position, dimension)
            if found:
                return {"scope": "slice", "dimension": dimension, "operands": (found,)}
    real = [tensor for tensor in floats[:_MOST_OPERANDS] if not is_complex(tensor)]
    return {"scope": "range", "operands": tuple(_range(tensor) for tensor in real)}


def _uniform(tensor: torch.Tensor, position: tuple[int, ...], dimension: int) -> str:
    """Returns the value that all elements of a slice have, if it is an infinity; else ""."""
    part = tensor[tuple(slice(None) if n == dimension else p for n, p in enumerate(position))]
    if numel(part) < 2 or is_complex(part) or not bool(every(part == part[0])):
        return ""
    return "" if isfinite(tolist(part[0])) else _number(tolist(part[0]))


def saved_operands(node: Node, gradient: torch.Tensor, received: object, position: tuple[int, ...]) -> dict[str, Any]:
    """Returns fields with the gradient that a node received and the values that it saved, at one element."""
    found: dict[str, str] = {}
    one = received[0] if isinstance(received, tuple) and len(received) == 1 else None
    if isinstance(one, torch.Tensor) and is_float(one) and _fits(one, gradient):
        found["gradient"] = _at(one, position)
    for slot, raw in raw_saved_of(node):
        data = None if raw is None else data_of(raw)
        if data is not None and is_measurable(data) and data.dtype != torch.bool and _fits(data, gradient):
            found[slot] = _at(data, position)
    kept = list(found.items())[: _MOST_OPERANDS + 1]
    return {
        "scope": "element" if kept else "",
        "names": tuple(name for name, _ in kept),
        "operands": tuple(value for _, value in kept),
    }


def _fits(tensor: torch.Tensor, result: torch.Tensor) -> bool:
    """Returns whether a tensor can be expanded to the shape of a result."""
    shape = tuple(tensor.shape)
    if not is_measurable(tensor) or len(shape) > result.dim():
        return False
    return all(size in (1, full) for size, full in zip(reversed(shape), reversed(result.shape), strict=False))


def _at(tensor: torch.Tensor, position: tuple[int, ...]) -> str:
    shape = tuple(tensor.shape)
    own = position[len(position) - len(shape) :]
    element = detach(tensor)[tuple(0 if size == 1 else place for place, size in zip(own, shape, strict=True))]
    return _number(tolist(element))


def _range(tensor: torch.Tensor) -> str:
    """Returns the shape and the range of a tensor's values: "2x3 values from 0.5 to 4"."""
    low, high = (_number(tolist(each)) for each in tensor.aminmax())
    return f"{'x'.join(map(str, tensor.shape))} values from {low} to {high}" if tensor.dim() else low


def _number(value: complex | bool) -> str:
    if isinstance(value, complex):
        return f"{value:.6g}"
    text = f"{value:.6g}"
    return "0" if text == "-0" else text
