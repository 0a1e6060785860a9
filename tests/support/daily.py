"""Chooses a sample of many similar test values for the everyday suite."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date
from typing import Any

import pytest


def one_in(number: int, every: Iterable[Any]) -> list[Any]:
    """Makes test values: one in `number` for every day, the others for `make unchanged` or `make fuzz`."""
    return [pytest.param(value, marks=[pytest.mark.complete] * (n % number > 0)) for n, value in enumerate(every)]


def first_daily(every: Iterable[Any], count: int = 1) -> list[Any]:
    """Makes test values: the first `count` for every day, the others for `make fuzz`."""
    values = list(every)
    return values[:count] + [pytest.param(value, marks=pytest.mark.complete) for value in values[count:]]


def rotating(number: int, every: Iterable[Any], day: int | None = None) -> list[Any]:
    """Makes test values: `number` of them for every day, others each day, and the rest for a complete run."""
    values = list(every)
    start = number * (date.today().toordinal() if day is None else day)
    today = {(start + n) % len(values) for n in range(number)} if values else set()
    return [pytest.param(value, marks=[pytest.mark.complete] * (n not in today)) for n, value in enumerate(values)]
