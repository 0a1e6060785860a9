"""Finds the tensors that a finding names, for the table below it."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator

from tensorlens.analysis.naming.names import Names, names_of
from tensorlens.analysis.per_trace import once_per_trace
from tensorlens.records.model import Backward, Call, Trace
from tensorlens.records.report import Diagnostic

_CODE = re.compile(r"`([^`]+)`")


def named_tensors(diagnostic: Diagnostic, trace: Trace) -> frozenset[int]:
    """Returns the tensors whose names are in the title, the labels, the explanation and the detail of a finding.

    A name that meant several tensors in turn means the last one that a call on a labelled line used; if none used it,
    the last one of all. `x.grad` means `x` too.
    """
    called = _tensors_by_name(trace)
    texts = (diagnostic.title, *(label.text for label in diagnostic.labels))
    texts += (diagnostic.explanation, *diagnostic.detail)
    pieces = dict.fromkeys(piece for text in texts for piece in _CODE.findall(text))
    spans = {label.span for label in diagnostic.labels}
    used = _used_at(trace, {site.id for site in trace.sites if site.span in spans})
    found: set[int] = set()
    for name in (name for piece in pieces for name in _names_in(piece, called)):
        found.add(max(used & called[name] or called[name]))
    return frozenset(found)


def _used_at(trace: Trace, sites: set[int]) -> set[int]:
    """Returns the tensors that the calls at some sites read, returned or changed."""
    used: set[int] = set()
    for event in trace.events:
        if isinstance(event, Call) and event.site in sites:
            used.update(access.tensor for access in (*event.inputs, *event.outputs))
            used.update(write.tensor for write in event.writes)
        elif isinstance(event, Backward) and event.site in sites:
            used.update(access.tensor for access in event.roots)
            used.update(gradient.tensor for gradient in event.gradients)
    return used


def _names_in(piece: str, called: dict[str, set[int]]) -> Iterator[str]:
    """Yields the names of tensors in a piece of code: the longest that are known, so `w.grad` before `w`."""
    if piece in called:
        yield piece
        return
    try:
        waiting: list[ast.AST] = [ast.parse(piece)]
    except (SyntaxError, ValueError):  # not code: a shape, or a part of a message
        return
    while waiting:
        node = waiting.pop()
        name = ast.unparse(node) if isinstance(node, ast.Name | ast.Attribute | ast.Subscript) else ""
        if name in called:
            yield name
        else:
            waiting += ast.iter_child_nodes(node)


@once_per_trace
def _tensors_by_name(trace: Trace) -> dict[str, set[int]]:
    """Maps every name that the report can give to a tensor to the tensors that had it."""
    names: Names = names_of(trace)
    called: dict[str, set[int]] = defaultdict(set)
    for tensor in trace.tensors:
        for name in names.ever_called(tensor.id):
            called[name].add(tensor.id)
            if name.endswith(".grad") and (owner := names.owner_of_gradient(tensor.id)) is not None:
                called[name] |= {owner}
    return {name: tensors for name, tensors in called.items() if name}
