"""Finds the cause of `saved-tensor-detached-inplace`."""

from __future__ import annotations

from tensorlens.analysis.changed_after_use import lost_history
from tensorlens.diagnostics.shared.changed_after_use import overtaken_before_backward

find = overtaken_before_backward(
    "saved-tensor-detached-inplace",
    lost_history,
    ("saved_here",),
    (
        "{name} was cut from its graph by {op}, and backward needs it with its history",
        "backward needs the tensor together with its place in the graph, and {op} takes that away for everyone",
        "{op} takes the history of {name} away here",
    ),
    "use `detach()`, which leaves the tensor as it is",
    "or call {op} after the last backward",
)
