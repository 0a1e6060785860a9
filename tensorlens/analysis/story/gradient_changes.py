"""Says in words what a backward pass did to a `.grad`."""

from __future__ import annotations

from tensorlens.records.model import Gradient


def gradient_kind(gradient: Gradient) -> str:
    """Says whether `.grad` was set, replaced or accumulated in place.

    Decided by the tensor in `.grad` and its version: the texts of large tensors do not show their values.
    """
    if gradient.before is None:
        return "set"
    if gradient.after is None:
        return "set to None"
    return "replaced by another tensor" if gradient.write is None else "accumulated in place"


def gradient_text(gradient: Gradient) -> str:
    if gradient.before != gradient.after:
        return f"{gradient.before} -> {gradient.after}"
    write = gradient.write
    versions = "" if write is None else f", v{write.before} -> v{write.after}"
    return f"{gradient.after}, {gradient_kind(gradient)}{versions}"
