"""Says in words what a backward pass did to a `.grad`."""

from __future__ import annotations

from tensorlens.records.model import Gradient


def gradient_kind(gradient: Gradient) -> str:
    """Returns whether backward set `.grad`, replaced it, or added to it in place.

    The tensor in `.grad` and its version decide that: the short text of a large tensor does not show all its values.
    """
    if gradient.before is None:
        return "set"
    if gradient.after is None:
        return "set to None"
    return "replaced by another tensor" if gradient.write is None else "added to"


def gradient_text(gradient: Gradient) -> str:
    if gradient.before != gradient.after:
        return f"{gradient.before} -> {gradient.after}"
    write = gradient.write
    versions = "" if write is None else f", v{write.before} -> v{write.after}"
    return f"{gradient.after}, {gradient_kind(gradient)}{versions}"
