"""Finds the cause of `leaf-moved-into-graph-interior`."""

from __future__ import annotations

from tensorlens.analysis.changed_after_use import became_non_leaf
from tensorlens.diagnostics.shared.changed_after_use import overtaken_before_backward

find = overtaken_before_backward(
    "leaf-moved-into-graph-interior",
    became_non_leaf,
    ("leaf_made_here", "graph_built_here"),
    (
        "{name} was a leaf when the graph was recorded, and {op} has made it the result of an operation",
        "backward wants to store a gradient in {name}, and gradients are stored in leaves only",
        "{op} is recorded and makes {name} its result",
    ),
    "compute a new tensor instead of changing {name} in place",
    "or change it inside `with torch.no_grad():`, after the last backward",
)
