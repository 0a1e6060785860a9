"""Finds the cause of `leaf-moved-into-graph-interior`."""

from __future__ import annotations

from tensorlens.analysis.changed_after_use import became_non_leaf
from tensorlens.diagnostics.shared.changed_after_use import overtaken_before_backward

find = overtaken_before_backward(
    "leaf-moved-into-graph-interior",
    became_non_leaf,
    ("leaf_made_here", "graph_built_here"),
    (
        "{code} made {name} the result of an operation, and an older graph still has it as a leaf",
        "backward stores gradients in leaves only, and {name} is none any more",
        "makes {name} its result",
    ),
    ("compute a new tensor instead of changing {name} in place", "modified_here"),
    ("or change it inside `with torch.no_grad():`, after the last backward", "modified_here"),
)
