"""Finds modules of the script that read in which mode they are."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from dis import get_instructions
from itertools import pairwise
from types import CodeType

import torch

LAYERS = (torch.nn.modules.dropout._DropoutNd, torch.nn.modules.batchnorm._BatchNorm)
_known: weakref.WeakKeyDictionary[type[torch.nn.Module], bool] = weakref.WeakKeyDictionary()


def reads_mode(kind: type[torch.nn.Module]) -> bool:
    """Returns whether the `forward` of a class that is none of PyTorch's reads `training`, or a method that it names.
    Runs of dropout and batch norm are seen themselves."""
    known = _known.get(kind)
    if known is None:
        known = _known[kind] = not issubclass(kind, LAYERS) and not _is_of_torch(kind) and _names_training(kind)
    return known


def _names_training(kind: type[torch.nn.Module]) -> bool:
    waiting, seen = ["forward"], {"forward"}
    for method in waiting:
        own = next(
            (vars(base)[method] for base in kind.__mro__ if method in vars(base) and not _is_of_torch(base)), None
        )
        code = getattr(getattr(own, "fget", own), "__code__", None)
        has_self = isinstance(code, CodeType) and code.co_argcount > 0
        names = set(_names(code, code.co_varnames[0])) if has_self and isinstance(code, CodeType) else set[str]()
        if "training" in names:
            return True
        waiting += sorted(names - seen)
        seen |= names
    return False


def _is_of_torch(kind: type) -> bool:
    return kind.__module__.partition(".")[0] in ("torch", "torchvision", "torchaudio")


def _names(code: CodeType, own: str) -> Iterator[str]:
    """Yields the attributes of its first argument that a function reads, also in functions inside it."""
    for held, read in pairwise(get_instructions(code)):
        is_own = held.opname.startswith(("LOAD_FAST", "LOAD_DEREF")) and held.argval == own
        if is_own and read.opname in ("LOAD_ATTR", "LOAD_METHOD"):
            yield read.argval
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield from _names(each, own)


def holder_of(part: torch.nn.Module, module: torch.nn.Module) -> weakref.ref[torch.nn.Module] | None:
    """Returns the innermost module around a part without parameters, inside a module, that has some."""
    if next(part.parameters(), None) is not None:
        return None
    around = {id(child): each for each in module.modules() for child in each.children()}
    found = around.get(id(part))
    while found is not None and next(found.parameters(), None) is None:
        found = around.get(id(found))
    return None if found is None else weakref.ref(found)
