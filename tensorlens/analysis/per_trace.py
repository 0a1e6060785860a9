"""Keeps what was computed from the last trace, because the findings, the story and the tables need the same indexes."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TypeVar

from tensorlens.records.model import Trace

T = TypeVar("T")


def once_per_trace(compute: Callable[[Trace], T]) -> Callable[[Trace], T]:
    """Decorates a function of a trace, so that it runs again only for another trace."""
    last: list[tuple[Trace, T]] = []

    @wraps(compute)
    def computed(trace: Trace) -> T:
        if not last or last[0][0] is not trace:
            last[:] = [(trace, compute(trace))]
        return last[0][1]

    return computed
