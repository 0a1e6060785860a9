"""Observes everything about tensors that a program could, and finds what differs under the lens."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from typing import Any

import torch

MANY = 60  # plain runs of what differs under the lens, to see whether it does so by itself
Observed = dict[str, Any]
Outcome = tuple[int, int, list[str]]  # samples, those whose numbers vary by themselves, what differs under the lens
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
    """Returns the values, bit by bit; for a tensor that is not dense, those of its parts."""
    plain = tensor.detach()
    if plain.is_meta or plain._is_zerotensor():
        return "none"
    if plain.layout == torch.sparse_coo:
        return _bytes(plain._indices()), _bytes(plain._values())
    if plain.layout != torch.strided or plain.is_quantized:
        return str(plain)
    if plain.dtype in (torch.bfloat16, torch.complex32):
        plain = plain.to(torch.complex64 if plain.is_complex() else torch.float32)
    return plain.resolve_conj().resolve_neg().reshape(-1).numpy().tobytes()  # numpy has fewer dimensions


def facts(tensor: torch.Tensor) -> Observed:
    """Returns the properties of a tensor that a program can read."""
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
    """Returns for each tensor the first that is the same object, the first on its storage, whether its base is one."""
    identities = [id(tensor) for tensor in tensors]
    storages = [tensor.untyped_storage()._cdata if tensor.layout == torch.strided else id(tensor) for tensor in tensors]
    return [
        (identities.index(one), storages.index(storage), id(tensor._base) in identities)
        for tensor, one, storage in zip(tensors, identities, storages, strict=True)
    ]


def attempt(function: Callable[[], Any], observed: Observed, part: str) -> Any:
    """Calls a function and keeps its exception, if any, with its text."""
    try:
        return function()
    except Exception as error:
        observed[part] = (type(error), str(error), type(error.__cause__), type(error.__context__))
        return None


@contextmanager
def watched(seen: Observed) -> Iterator[None]:
    """Collects the warnings, and the state of the random generator at the end."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    seen["warnings"] = [(entry.category, str(entry.message), entry.filename, entry.lineno) for entry in caught]
    seen["random"] = torch.get_rng_state().numpy().tobytes()


def derive(outputs: list[torch.Tensor], leaves: list[torch.Tensor], twice: bool) -> list[torch.Tensor]:
    """Runs backward from all outputs; or through the gradients, which it then returns with their graph."""
    seeds = [output for output in outputs if output.requires_grad]
    if not seeds:
        return []
    ones = [torch.ones_like(seed) for seed in seeds]
    if not twice:
        torch.autograd.backward(seeds, ones)
        return []
    if not leaves:
        return []
    first = torch.autograd.grad(seeds, leaves, ones, create_graph=True, allow_unused=True)
    second = [gradient.abs().sum() for gradient in first if gradient is not None and gradient.requires_grad]
    if second:
        torch.autograd.backward(second, retain_graph=True)
    return list(tensors_in(first))


def differences(plain: Observed, lens: Observed) -> list[str]:
    return [part for part in plain | lens if plain.get(part, None) != lens.get(part, None)]


def without_values(seen: Observed) -> Observed:
    """Drops the numbers of addresses, which vary from run to run."""
    told = [{name: fact for name, fact in tensor.items() if name != "values"} for tensor in seen["tensors"]]
    return {**seen, "tensors": told, "other": None}


def settled(plain: Observed, under: Observed, again: Callable[[], Observed]) -> tuple[bool, list[str]]:
    """Finds what differs under the lens, and whether plain runs differ among themselves (`again` is another one).

    Further plain runs are made only after a difference: they decide whether the lens causes it.
    """
    parts = differences(plain, under)
    for _ in range(MANY if parts else 0):
        other = again()
        if differences(plain, other):
            plain, under, other = without_values(plain), without_values(under), without_values(other)
            return True, [part for part in differences(plain, under) if plain.get(part) == other.get(part)]
    return False, parts


def compared(make: Callable[[], list[Any]], observe: Callable[[Any, Lens], Observed], name: str, lens: Lens) -> Outcome:
    """Observes each sample with and without the lens; `make` returns the same samples at every call."""

    def plainly(number: int) -> Observed:
        return observe(make()[number], nullcontext)

    random = 0
    wrong: list[str] = []
    mine, others = make(), make()
    for number, (one, other) in enumerate(zip(mine, others, strict=True)):
        varies, parts = settled(observe(one, nullcontext), observe(other, lens), partial(plainly, number))
        random += varies
        wrong += [f"{name} sample {number}: {part}" for part in parts]
    return len(mine), random, wrong


def added(found: Iterable[Outcome]) -> Outcome:
    samples, random = 0, 0
    wrong: list[str] = []
    for more, varying, different in found:
        samples, random, wrong = samples + more, random + varying, wrong + different
    return samples, random, wrong
