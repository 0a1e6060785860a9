"""Defines the facts about arrays of NumPy beside tensors that only a run with `--training` records."""

from __future__ import annotations

from dataclasses import dataclass

from tensorlens.records.fields import NonNegative


@dataclass(frozen=True, slots=True)
class ArraysBeside:
    """The names of arrays (n,) in the frame that makes an array of a tensor (n, 1)."""

    index: int  # of the event after the call that makes it
    rows: NonNegative
    names: tuple[str, ...]
