"""Ranks the names of a tensor: those at the end of the run, and those of its module inside functions."""

from __future__ import annotations

import re
from collections import defaultdict

from tensorlens.analysis.naming.syntax import Syntax
from tensorlens.records.model import Trace


def names_at_end(trace: Trace, syntax: Syntax) -> dict[int, tuple[str, ...]]:
    """Returns the names of each tensor, the best first: global before local, short paths before long ones.

    The variable of a `for` loop, or an item of a dict, names a parameter only if nothing else does.
    """
    ranked: dict[int, list[tuple[tuple[bool, bool, int, int], str]]] = defaultdict(list)
    loop_names: frozenset[str] | None = None
    for position, binding in enumerate(trace.end.bindings):
        depth = binding.name.count(".") + binding.name.count("[")
        temporary = binding.name == "_"
        if trace.tensors[binding.tensor].type == "Parameter":
            loop_names = syntax.loop_names() if loop_names is None else loop_names
            temporary = re.split(r"[.\[]", binding.name)[0] in loop_names or "['" in binding.name
        rank = (binding.scope != "<module>", temporary, depth, position)
        ranked[binding.tensor].append((rank, binding.name))
    return {tensor: _in_order(sorted(names)) for tensor, names in ranked.items()}


def _in_order(names: list[tuple[tuple[bool, bool, int, int], str]]) -> tuple[str, ...]:
    """Returns the names in the order of their ranks. Temporary names count only if there are no others."""
    lasting = [name for rank, name in names if not rank[1]]
    return tuple(dict.fromkeys(lasting or [name for _, name in names]))


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
