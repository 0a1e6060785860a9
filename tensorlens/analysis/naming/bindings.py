"""Ranks the names of a tensor: those at the end of the run, and those of its module inside functions."""

from __future__ import annotations

import re
from collections import defaultdict

from tensorlens.analysis.naming.syntax import Syntax
from tensorlens.records.model import Trace

_Rank = tuple[int, bool, int, int]


def names_at_end(trace: Trace, syntax: Syntax) -> dict[int, tuple[str, ...]]:
    """Returns the names of each tensor, the best first: global before local, short paths before long ones.

    A parameter is named by its path through modules, `model.fc.weight`. A path from `self`, which means another object
    elsewhere, names it only if no other path does; the variable of a `for` loop, or an item of a list or a dict, only
    if nothing else does.
    """
    ranked: dict[int, list[tuple[_Rank, str]]] = defaultdict(list)
    loop_names: frozenset[str] | None = None
    for position, binding in enumerate(trace.end.bindings):
        depth = binding.name.count(".") + binding.name.count("[")
        grade = 2 if binding.name == "_" else 0
        if trace.tensors[binding.tensor].type == "Parameter":
            loop_names = syntax.loop_names() if loop_names is None else loop_names
            root = root_of(binding.name)
            grade = 2 if root in loop_names or binding.name.endswith("]") else max(grade, int(root == "self"))
        ranked[binding.tensor].append(((grade, binding.scope != "<module>", depth, position), binding.name))
    return {tensor: _in_order(sorted(names)) for tensor, names in ranked.items()}


def root_of(name: str) -> str:
    """Returns the variable that a name begins with: `model` of `model.layers[0].weight`."""
    return re.split(r"[.\[]", name, maxsplit=1)[0]


def _in_order(names: list[tuple[_Rank, str]]) -> tuple[str, ...]:
    """Returns the names of the best grade in the order of their ranks."""
    return tuple(dict.fromkeys(name for rank, name in names if rank[0] == names[0][0][0]))


def names_of_modules(trace: Trace) -> dict[int, str]:
    """Returns the name that a running function had for each tensor of a module; one through `self` only as a last
    resort."""
    best: dict[int, tuple[tuple[bool, int], str]] = {}
    for reached in trace.inspection.reached:
        for name, tensor in zip(reached.names, reached.tensors, strict=True):
            rank = name.startswith("self."), name.count(".") + name.count("[")
            if tensor not in best or rank < best[tensor][0]:
                best[tensor] = rank, name
    return {tensor: name for tensor, (_, name) in best.items()}
