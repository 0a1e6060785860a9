"""Walks the modules in a module as `named_modules()` does, and runs no line of the program's code meanwhile.

A module whose `__init__` raised before it called that of `nn.Module` has no `_modules` yet: it consists of itself.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch


def named_parts(module: torch.nn.Module) -> Iterator[tuple[str, torch.nn.Module]]:
    """(path, module) of a module and of those in it, each once."""
    seen: set[int] = set()
    waiting = [("", module)]
    while waiting:
        path, part = waiting.pop()
        if id(part) in seen:
            continue
        seen.add(id(part))
        yield path, part
        children = vars(part).get("_modules") or {}
        waiting += [
            (f"{path}.{name}" if path else name, child)
            for name, child in reversed(list(children.items()))
            if child is not None
        ]


def parameters_of(module: torch.nn.Module) -> Iterator[torch.nn.Parameter]:
    """The registered parameters of a module and of those in it, each once."""
    seen: set[int] = set()
    for _, part in named_parts(module):
        for parameter in (vars(part).get("_parameters") or {}).values():
            if parameter is not None and id(parameter) not in seen:
                seen.add(id(parameter))
                yield parameter
