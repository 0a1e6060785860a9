"""Finds the cause of `saved-tensor-detached-inplace`."""

from __future__ import annotations

from tensorlens.analysis.changed_after_use import lost_history
from tensorlens.diagnostics.shared.changed_after_use import overtaken_before_backward

find = overtaken_before_backward(
    "saved-tensor-detached-inplace",
    lost_history,
    ("saved_here",),
    (
        "{code} cut {name} from its graph, which backward still needs",
        "an operation that keeps a tensor needs its history too, and {op} drops it for every user of the tensor",
        "drops the history of {name}",
    ),
    ("use `detach()`: it makes a new tensor and leaves {name} as it is", "modified_here"),
    ("or call {op} after the last backward", "modified_here"),
)
