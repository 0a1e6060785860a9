"""Finds the cause of `backward-after-data-swap`."""

from __future__ import annotations

from tensorlens.analysis.changed_after_use import moved_to_other_storage
from tensorlens.diagnostics.shared.changed_after_use import overtaken_before_backward

find = overtaken_before_backward(
    "backward-after-data-swap",
    moved_to_other_storage,
    ("saved_here",),
    (
        "{name} was given other memory by {op} after autograd had saved it",
        "the version of {name} did not move, so backward goes on, and the sizes it combines do not fit",
        "from here on {name} uses other memory",
    ),
    "call backward before the values are replaced, or compute the loss again afterwards",
    "to change values, use `with torch.no_grad(): p.copy_(...)`: autograd notices that",
)
