"""One operation on PyTorch's own sample inputs, forward and backward, and all that a program could observe of it."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch

import tensorlens

MANY = 60  # runs of a sample that differs, to see whether it does so by itself
DTYPES = (torch.float64, torch.float32, torch.complex128, torch.int64)
Observed = dict[str, Any]
Lens = Callable[[], AbstractContextManager[Any]]


def tensors_in(value: Any, depth: int = 4) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif depth and isinstance(value, (list, tuple)):
        for item in value:
            yield from tensors_in(item, depth - 1)
    elif depth and isinstance(value, dict):
        for item in value.values():
            yield from tensors_in(item, depth - 1)


def _bytes(tensor: torch.Tensor) -> Any:
    """The values, bit by bit; of a tensor that is not dense, of its parts."""
    plain = tensor.detach()
    if plain._is_zerotensor():
        return "zero"
    if plain.layout == torch.sparse_coo:
        return _bytes(plain._indices()), _bytes(plain._values())
    if plain.layout != torch.strided or plain.is_quantized:
        return str(plain)
    if plain.dtype in (torch.bfloat16, torch.complex32):
        plain = plain.to(torch.complex64 if plain.is_complex() else torch.float32)
    return plain.resolve_conj().resolve_neg().numpy().tobytes()


def facts(tensor: torch.Tensor) -> Observed:
    """What a program can ask of a tensor."""
    strided = tensor.layout == torch.strided
    node = tensor.grad_fn
    return {
        "values": _bytes(tensor),
        "type": type(tensor).__name__,
        "shape": tuple(tensor.shape),
        "dtype": tensor.dtype,
        "layout": (tensor.layout, tensor.stride(), tensor.storage_offset()) if strided else tensor.layout,
        "bits": (tensor.is_conj(), tensor.is_neg(), tensor.is_inference()),
        "version": None if tensor.is_inference() else tensor._version,
        "autograd": (tensor.requires_grad, tensor.is_leaf, tensor.output_nr, tensor._is_view()),
        "node": None if node is None else (node.name(), len(node.next_functions)),
        "storage": tensor.untyped_storage().nbytes() if strided else None,
    }


def sharing(tensors: list[torch.Tensor]) -> list[tuple[int, int, bool]]:
    """For each tensor, the first that is the same object, the first on its storage, and whether its base is one."""
    identities = [id(tensor) for tensor in tensors]
    storages = [tensor.untyped_storage()._cdata if tensor.layout == torch.strided else id(tensor) for tensor in tensors]
    return [
        (identities.index(one), storages.index(storage), id(tensor._base) in identities)
        for tensor, one, storage in zip(tensors, identities, storages, strict=True)
    ]


def _seed_gradients(outputs: list[torch.Tensor]) -> list[torch.Tensor]:
    return [torch.ones_like(output) for output in outputs]


def attempt(function: Callable[[], Any], observed: Observed, part: str) -> Any:
    """Call; keep the exception with its text where there is one."""
    try:
        return function()
    except Exception as error:
        observed[part] = (type(error), str(error), type(error.__cause__), type(error.__context__))
        return None


def observe(op: Any, sample: Any, lens: Lens) -> Observed:
    """Run the sample forward and backward inside `lens()`; read everything outside of it."""
    given = [sample.input, sample.args, sample.kwargs]
    inputs = list(tensors_in(given))
    seen: Observed = {}
    torch.manual_seed(5)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with lens():
            result = attempt(lambda: op(sample.input, *sample.args, **sample.kwargs), seen, "forward")
            outputs = list(tensors_in(result))
            seeds = [output for output in outputs if output.requires_grad]
            if seeds:
                attempt(lambda: torch.autograd.backward(seeds, _seed_gradients(seeds)), seen, "backward")
    seen["warnings"] = [(entry.category, str(entry.message), entry.filename, entry.lineno) for entry in caught]
    leaves = [tensor for tensor in inputs if tensor.is_leaf and tensor.requires_grad]
    gradients = [leaf.grad for leaf in leaves if leaf.grad is not None]
    everything = inputs + outputs + gradients
    seen["sharing"] = sharing(everything)
    seen["kinds"] = (type(result), len(inputs), len(outputs), [leaf.grad is not None for leaf in leaves])
    seen["random"] = torch.get_rng_state().numpy().tobytes()
    with torch.no_grad():
        seen["tensors"] = [facts(tensor) for tensor in everything]
    seen["other"] = repr(result) if not outputs else None
    return seen


def samples(op: Any, dtype: torch.dtype, limit: int | None) -> list[Any]:
    """Sample inputs, the same at every call."""
    torch.manual_seed(3)
    wants_grad = op.supports_autograd and dtype.is_floating_point | dtype.is_complex
    found = []
    for sample in op.sample_inputs("cpu", dtype, requires_grad=wants_grad):
        found.append(sample)
        if len(found) == limit:
            break
    return found


def differences(plain: Observed, lens: Observed) -> list[str]:
    return [part for part in plain | lens if plain.get(part, None) != lens.get(part, None)]


def without_values(seen: Observed) -> Observed:
    """What stays when memory is handed out as it comes: everything but the numbers."""
    told = [{name: fact for name, fact in tensor.items() if name != "values"} for tensor in seen["tensors"]]
    return {**seen, "tensors": told, "other": None}


def compare(
    op: Any, dtype: torch.dtype, limit: int | None, lens: Lens = tensorlens.trace
) -> tuple[int, int, list[str]]:
    """(samples, those that two plain runs give different numbers for, what differs under the lens)."""
    runs = [samples(op, dtype, limit) for _ in range(3)]
    random, wrong = 0, []
    for number, (first, second, third) in enumerate(zip(*runs, strict=True)):
        plain, again = observe(op, first, nullcontext), observe(op, second, nullcontext)
        under = observe(op, third, lens)
        differs, parts = compared(plain, again, under)
        if parts and not differs:  # numbers that vary seldom: do they vary without the lens?
            differs, parts = compared(plain, _another(op, (dtype, limit, number), plain), under)
        random += differs
        wrong += [f"{op.formatted_name} {dtype} sample {number}: {part}" for part in parts]
    return len(runs[0]), random, wrong


def _another(op: Any, which: tuple[torch.dtype, int | None, int], plain: Observed) -> Observed:
    """A plain run of a sample that gives something else than `plain`, if there is one among `MANY`; else the last."""
    dtype, limit, number = which
    for _ in range(MANY):
        again = observe(op, samples(op, dtype, limit)[number], nullcontext)
        if differences(plain, again):
            break
    return again


def compared(plain: Observed, again: Observed, under: Observed) -> tuple[bool, list[str]]:
    """Whether two plain runs give different numbers, and what differs under the lens and does not between them."""
    determined = not differences(plain, again)
    if not determined:
        plain, under, again = without_values(plain), without_values(under), without_values(again)
    return not determined, [part for part in differences(plain, under) if plain.get(part) == again.get(part)]
