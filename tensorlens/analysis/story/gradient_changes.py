"""What a backward pass did to a `.grad`, in words."""

from __future__ import annotations

from tensorlens.records.model import Gradient


def gradient_kind(gradient: Gradient) -> str:
    """What a pass did to a `.grad`, by the tensor that it holds and that tensor's version: the texts of large tensors
    do not show their values."""
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
