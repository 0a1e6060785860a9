"""Defines the facts about tensors that a program keeps, which only a run with `--training` records."""

from __future__ import annotations

from dataclasses import dataclass

from tensorlens.records.fields import SiteId, TensorId


@dataclass(frozen=True, slots=True)
class KeptThenChanged:
    """A tensor that a list or dict of a running function held when an activation changed its values in place."""

    index: int  # of an event after the change
    site: SiteId  # the line of the function that led to the change, or to the next one in place if `alone`
    tensor: TensorId  # the item
    changed: TensorId  # what was changed: the item itself, or a tensor with its memory
    name: str  # the variable that is the list or dict
    key: str  # the place of the item: "0", "'conv1'"
    alone: bool  # later, when the function reached the next change in place, no other variable or item had its memory
