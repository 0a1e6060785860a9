"""Measures ratios of times on a noisy machine: the better of two runs under an observer, divided by the better of two
plain runs of the same round."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median, quantiles

import torch

from benchmarks.observers import Observer
from benchmarks.workloads import Workload


@dataclass(frozen=True)
class Measured:
    """One observer on one workload: the ratio of each round to the plain time."""

    ratios: list[float]

    @property
    def ratio(self) -> float:
        return median(self.ratios)

    @property
    def spread(self) -> tuple[float, float]:
        """Returns the range of the middle half of the ratios."""
        if len(self.ratios) < 4:
            return min(self.ratios), max(self.ratios)
        low, _, high = quantiles(self.ratios, n=4)
        return low, high


def measure(make: Callable[[], Workload], observers: dict[str, Observer], rounds: int) -> dict[str, Measured]:
    """Measures the workload of `make` under each observer, relative to `observers["plain"]`."""
    torch.manual_seed(0)
    run = make()
    run()
    results: dict[str, Measured] = {name: Measured([]) for name in observers}
    for _ in range(rounds):
        plain = _best(run, observers["plain"])
        for name, observer in observers.items():
            results[name].ratios.append(1.0 if name == "plain" else _best(run, observer) / plain)
    return results


def _best(run: Workload, observer: Observer) -> float:
    """Returns the better of two runs, since one may have been disturbed."""
    return min(_seconds(run, observer), _seconds(run, observer))


def _seconds(run: Workload, observer: Observer) -> float:
    with observer():
        gc.collect()  # garbage of an earlier observer must not count
        start = time.perf_counter()
        run()
        return time.perf_counter() - start
