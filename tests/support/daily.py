"""What is tried every day, of much that is tried alike."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def one_in(number: int, every: Iterable[Any]) -> list[Any]:
    """Values to run a test with: one in so many every day, the others with `make unchanged` or `make fuzz`."""
    return [pytest.param(value, marks=[pytest.mark.complete] * (n % number > 0)) for n, value in enumerate(every)]


def first_daily(every: Iterable[Any], count: int = 1) -> list[Any]:
    """Values to run a test with: the first `count` every day, the others with `make fuzz`."""
    values = list(every)
    return values[:count] + [pytest.param(value, marks=pytest.mark.complete) for value in values[count:]]
