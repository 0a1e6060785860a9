"""Chooses a sample of many similar test values for the everyday suite."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def one_in(number: int, every: Iterable[Any]) -> list[Any]:
    """Makes test values: one in `number` for every day, the others for `make unchanged` or `make fuzz`."""
    return [pytest.param(value, marks=[pytest.mark.complete] * (n % number > 0)) for n, value in enumerate(every)]


def first_daily(every: Iterable[Any], count: int = 1) -> list[Any]:
    """Makes test values: the first `count` for every day, the others for `make fuzz`."""
    values = list(every)
    return values[:count] + [pytest.param(value, marks=pytest.mark.complete) for value in values[count:]]
