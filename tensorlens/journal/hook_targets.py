"""Gives the hooks of tensors the numbers that the tensors have in the trace."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tensorlens.records.callbacks import Callbacks

_OF_TENSORS = ("tensor hook", "post-accumulate hook")


def with_numbers(called: Callbacks, numbers: Mapping[int, int]) -> Callbacks:
    """Replaces the journal's numbers of tensors. A tensor that the trace does not have gets one below zero."""
    found = (
        replace(each, target=numbers.get(each.target, -1 - each.target))
        if each.target is not None and each.kind in _OF_TENSORS
        else each
        for each in called.registrations
    )
    return replace(called, registrations=tuple(found))
