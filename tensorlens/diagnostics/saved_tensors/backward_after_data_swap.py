"""Finds the cause of `backward-after-data-swap`."""

from __future__ import annotations

from tensorlens.analysis.changed_after_use import moved_to_other_storage
from tensorlens.diagnostics.shared.changed_after_use import overtaken_before_backward

find = overtaken_before_backward(
    "backward-after-data-swap",
    moved_to_other_storage,
    ("saved_here",),
    (
        "{code} put other memory under {name}, which backward still needs",
        "PyTorch does not count this as a write, so backward goes on with the new memory, whose size does not fit",
        "{name} uses other memory from here on",
    ),
    ("compute the loss again below this line, or call backward above it", "modified_here"),
    ("to change values only, use `copy_()` under `torch.no_grad()`: PyTorch notices that", "modified_here"),
)
