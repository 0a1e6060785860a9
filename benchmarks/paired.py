"""Ratios that hold on a noisy machine: in each round every observer runs the same workload twice, as the plain run
does, and the better of its times is divided by the better plain one."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median, quantiles

import torch

from benchmarks.observers import Observer
from benchmarks.workloads import Workload

SLOW = 20.0  # an observer that takes this many times the plain run is measured in fewer rounds
FEW = 3


@dataclass(frozen=True)
class Measured:
    """One observer on one workload: its time over the plain one's in each round, and what it adds to it, in seconds."""

    ratios: list[float]
    added: list[float]

    @property
    def ratio(self) -> float:
        return median(self.ratios)

    @property
    def spread(self) -> tuple[float, float]:
        """The middle half of the ratios."""
        if len(self.ratios) < 4:
            return min(self.ratios), max(self.ratios)
        low, _, high = quantiles(self.ratios, n=4)
        return low, high


def measure(make: Callable[[], Workload], observers: dict[str, Observer], rounds: int) -> dict[str, Measured]:
    """Times of `make`'s workload under each observer; `observers["plain"]` is what they are compared with."""
    torch.manual_seed(0)
    run = make()
    run()
    found: dict[str, Measured] = {name: Measured([], []) for name in observers}
    for number in range(rounds):
        plain = _best(run, observers["plain"])
        for name, observer in observers.items():
            told = found[name]
            slow = bool(told.ratios) and told.ratio > SLOW
            if number >= FEW and slow:
                continue
            took = plain if name == "plain" else _seconds(run, observer) if slow else _best(run, observer)
            told.ratios.append(took / plain)
            told.added.append(took - plain)
    return found


def _best(run: Workload, observer: Observer) -> float:
    """The better of two runs: one of them may have been disturbed."""
    return min(_seconds(run, observer), _seconds(run, observer))


def _seconds(run: Workload, observer: Observer) -> float:
    with observer():
        gc.collect()  # what an earlier observer left behind is nobody's cost
        start = time.perf_counter()
        run()
        return time.perf_counter() - start
