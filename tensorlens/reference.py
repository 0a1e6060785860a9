"""The frozen records of a comparison with a second run, in which copies were kept of what autograd saves."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Difference:
    """A gradient that is another in the run with copies."""

    backward: int  # index of the event of the pass
    tensor: int
    largest: float  # the largest absolute difference
    relative: float  # that, against the largest absolute value of the right gradient
    start: int  # position, in the flattened gradient, of the first values shown
    got: tuple[float, ...]  # values from there on, as they were
    right: tuple[float, ...]  # and as they are in the run with copies; empty: it has no such gradient
    values: int  # how many values the gradient has


@dataclass(frozen=True, slots=True)
class Reference:
    """What a second run of the program, with copies kept of what autograd saves, came to."""

    compared: tuple[int, ...] = ()  # indices of the events of the passes whose gradients were compared
    differences: tuple[Difference, ...] = ()  # all in the last of those passes
    reason: str = ""  # why nothing is said of the passes after them; "": there is none, or none was compared
