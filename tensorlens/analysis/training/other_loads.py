"""Finds the places that may load the state of something other than a module, as of an optimizer."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensorlens.analysis.trace_index import TraceIndex

_MODULE = "Module.load_state_dict"


def other_loads(facts: TraceIndex) -> Iterator[ast.Attribute]:
    """Yields the `load_state_dict` of each call that the trace does not show to be one of a module."""
    modules = {facts.span(site.id) for site in facts.trace.sites if site.through == _MODULE}
    for file, tree in facts.trees():
        for node in ast.walk(tree):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
                continue
            if node.func.attr == "load_state_dict" and facts.span_of(node, file) not in modules:
                yield node.func
