"""Checks which numbers of a `LambdaLR`'s functions are read, and that nothing of the program runs."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from tensorlens.tracer.training.schedule_counts import MOST, counts_of

TOTAL, RATE, FEW = 300, 0.5, 1
config = SimpleNamespace(steps=400, note="text")


def plain(step: int) -> float:
    return step / TOTAL * RATE + FEW


def by_another(step: int) -> float:
    return plain(step)


def with_default(step: int, length: int = 500) -> float:
    return step / length


def of_config(step: int) -> float:
    return float(step / config.steps)


def made(total: int) -> Callable[[int], float]:
    return lambda step: step / total


def empty() -> Callable[[int], float]:
    def rate(step: int) -> float:
        return step / later

    if TOTAL < 0:
        later = 1
    return rate


class Rate:
    def __init__(self) -> None:
        self.total, self.is_on, self.shown = 600, True, 900

    def __call__(self, step: int) -> float:
        return step / self.total

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(name) if name.startswith("__") else RuntimeError(name)


class Computed:
    total: int

    @property
    def __dict__(self) -> Any:  # type: ignore[override]
        raise RuntimeError

    def __call__(self, step: int) -> float:
        return step / self.total


class Slots:
    __slots__ = ("TOTAL",)
    TOTAL: int

    def rate(self, step: int) -> float:
        return step / self.TOTAL


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (plain, {"TOTAL": 300}),
        (by_another, {"TOTAL": 300}),
        (with_default, {"length": 500}),
        (of_config, {"steps": 400}),
        (made(700), {"total": 700}),
        (empty(), {}),
        (functools.partial(with_default, length=800), {"length": 800}),
        (Rate(), {"total": 600}),
        (Rate().__call__, {"total": 600}),
        (Computed(), {}),
        (Slots().rate, {}),
        (len, {}),
    ],
)
def test_the_numbers_that_a_function_reads(function: Callable[[int], float], expected: dict[str, int]) -> None:
    found = counts_of(SimpleNamespace(lr_lambdas=[function]))
    assert {each.name: each.value for each in found} == expected


def test_other_schedulers_have_none() -> None:
    assert counts_of(SimpleNamespace()) == ()
    assert counts_of(SimpleNamespace(lr_lambdas=None)) == ()


def test_there_are_at_most_so_many() -> None:
    names = {f"a{n}": 100 + n for n in range(50)}
    many = eval("lambda step: " + " + ".join(names), names)
    assert len(counts_of(SimpleNamespace(lr_lambdas=[many]))) == MOST
