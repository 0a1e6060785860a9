"""Probes of what a call costs, on an input of a size that matters."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from tensorlens.compare.records import Answer
from tensorlens.probe import words
from tensorlens.probe.probes.table import probe

if TYPE_CHECKING:
    from tensorlens.probe.bench import Bench


@probe("memory allocated", "cost", everywhere=False)
def bytes_allocated(bench: Bench) -> Answer:
    """How much memory does the call allocate at most at one time, on a large x?"""
    subject = bench.subject(bench.large)
    most, kept = bench.allocated(lambda: bench.apply(subject).returned)
    own = subject.x.numel() * subject.x.element_size()
    least = own / 1000  # a scalar argument's few bytes are no cost
    if most < least:
        return Answer(0, "none")
    times = f"{words.amount(most)}, {most / own:.1f} times x"
    return Answer(most, times if abs(most - kept) < least else f"{times}; kept: {words.amount(max(kept, 0))}")


@probe("time per call", "cost", everywhere=False)
def time_ratio(bench: Bench) -> Answer:
    """How long does a call take on a large x, against the fastest operand: median, and where half of the calls lie?"""
    spent: list[int] = []
    started = time.perf_counter()
    while len(spent) < 3 or (len(spent) < 200 and time.perf_counter() - started < 0.7):
        spent.append(bench.timed(bench.subject(bench.large)))
    spent = sorted(spent[1:])
    low, middle, high = (spent[int(len(spent) * part)] for part in (0.25, 0.5, 0.75))
    return Answer(middle, f"{low} {middle} {high}")
