"""Ranks the names that led to a tensor: when the run ended, or while a function ran that holds its module."""

from __future__ import annotations

import re
from collections import defaultdict

from tensorlens.analysis.naming.syntax import Syntax
from tensorlens.records.model import Trace


def names_at_end(trace: Trace, syntax: Syntax) -> dict[int, tuple[str, ...]]:
    """The names of each tensor: those of the module before a function's, short paths before long ones. A parameter has
    the name that a loop over parameters ended with, or its place in a list, only where no other leads to it."""
    found: dict[int, list[tuple[tuple[bool, bool, int, int], str]]] = defaultdict(list)
    passing: frozenset[str] | None = None
    for position, binding in enumerate(trace.end.bindings):
        depth = binding.name.count(".") + binding.name.count("[")
        left = binding.name == "_"
        if trace.tensors[binding.tensor].type == "Parameter":
            passing = syntax.loop_names() if passing is None else passing
            left = re.split(r"[.\[]", binding.name)[0] in passing or "['" in binding.name
        rank = (binding.scope != "<module>", left, depth, position)
        found[binding.tensor].append((rank, binding.name))
    return {tensor: _best(sorted(names)) for tensor, names in found.items()}


def _best(names: list[tuple[tuple[bool, bool, int, int], str]]) -> tuple[str, ...]:
    """The names in the order of their ranks, less those that are only passing where there are others."""
    lasting = [name for rank, name in names if not rank[1]]
    return tuple(dict.fromkeys(lasting or [name for _, name in names]))


def names_of_modules(trace: Trace) -> dict[int, str]:
    """The name by which a function reached each tensor of a module while it ran; one through `self` comes last."""
    found: dict[int, tuple[tuple[bool, int], str]] = {}
    for reached in trace.inspection.reached:
        for name, tensor in zip(reached.names, reached.tensors, strict=True):
            ranked = (name.startswith("self."), name.count(".") + name.count("[")), name
            if tensor not in found or ranked[0] < found[tensor][0]:
                found[tensor] = ranked
    return {tensor: name for tensor, (_, name) in found.items()}
