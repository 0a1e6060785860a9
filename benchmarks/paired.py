"""Measures ratios of times on a noisy machine, and what an observer costs once.

Each round runs the workload three times under each observer. The better of the two later runs is divided by the better
plain one of the same round. What the first run takes longer is what the observer costs once.
"""

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
    """One observer on one workload: the ratio of each round to the plain time, and the seconds that it adds once."""

    ratios: list[float]
    once: list[float]

    @property
    def ratio(self) -> float:
        return median(self.ratios)

    @property
    def seconds_once(self) -> float:
        return median(self.once)

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
    results: dict[str, Measured] = {name: Measured([], []) for name in observers}
    for _ in range(rounds):
        plain, plain_once = _seconds(run, observers["plain"])
        for name, observer in observers.items():
            seconds, once = (plain, plain_once) if name == "plain" else _seconds(run, observer)
            results[name].ratios.append(seconds / plain)
            results[name].once.append(once - plain_once)
    return results


def _seconds(run: Workload, observer: Observer) -> tuple[float, float]:
    """Returns what the better of two runs takes, since one may have been disturbed, and what the run before them takes
    longer.

    The frame that enters the observer calls the workload itself: TorchSnooper follows calls from there to a depth.
    """
    times = []
    with observer():
        gc.collect()  # garbage of an earlier observer must not count
        for _ in range(3):
            start = time.perf_counter()
            run()
            times.append(time.perf_counter() - start)
    first, *later = times
    return min(later), first - min(later)
