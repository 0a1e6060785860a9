"""Probes of what a call costs, on an input of a size that matters."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from tensorlens.compare.records import Answer
from tensorlens.probe import words
from tensorlens.probe.probes.table import probe

if TYPE_CHECKING:
    from tensorlens.probe.bench import Bench


TOO_LARGE = "does not run on a large x"
SECONDS, CALLS = 0.7, 200  # at most, for the times of one operand
BATCH = 8  # inputs made before the first of them is used; its time does not count
MEMORY = 100_000_000  # bytes of x that a batch may take; what belongs to it takes some times that


@probe("memory allocated", "cost", everywhere=False)
def bytes_allocated(bench: Bench) -> Answer:
    """How much memory does the call allocate at most at one time, on a large x?"""
    subject = bench.subject(bench.large)
    own = max(1, subject.x.numel() * subject.x.element_size())
    try:
        most, kept = bench.allocated(lambda: bench.apply(subject).returned)
    except Exception as error:
        return words.raised(error, TOO_LARGE)
    least = own / 1000  # a scalar argument's few bytes are no cost
    if most < least:
        return Answer(0, "none")
    times = f"{words.amount(most)}, {most / own:.1f} times x"
    return Answer(most, times if most - kept < own / 20 else f"{times}; kept: {words.amount(max(kept, 0))}")


@probe("time per call", "cost", everywhere=False)
def time_ratio(bench: Bench) -> Answer:
    """How long does a call take on a large x, against the fastest operand: median, and where half of the calls lie?"""
    spent: list[int] = []
    started = time.perf_counter()
    try:
        bench.settle_allocator()
        batch = max(2, min(BATCH, MEMORY // bench.bytes_of_large))
        while not spent or (len(spent) < CALLS and time.perf_counter() - started < SECONDS):
            subjects = [bench.subject(bench.large) for _ in range(batch)]  # at once: making them cools the caches
            spent += [bench.timed(subject) for subject in subjects][1:]
    except Exception as error:
        return words.raised(error, TOO_LARGE)
    spent.sort()
    low, middle, high = (spent[int(len(spent) * part)] for part in (0.25, 0.5, 0.75))
    return Answer(middle, f"{low} {middle} {high}")  # nanoseconds: `compare.rows` makes ratios of all operands' times
