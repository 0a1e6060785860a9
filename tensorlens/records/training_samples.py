"""Defines the facts about data that only a run with `--training` records."""

from __future__ import annotations

from dataclasses import dataclass

from tensorlens.records.fields import NonNegative


@dataclass(frozen=True, slots=True)
class WrappedAround:
    """A call whose result has 8 bits, and does not hold the exact result for some elements: 3 - 5 gives 254."""

    index: int  # of the call
    elements: NonNegative
    wrapped: NonNegative  # of these, the ones with another value than the exact one
    least: int  # of the exact values
    most: int
