"""Probes of the time and memory of a call, on a large input."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from tensorlens.compare.comparison_records import Answer, Input
from tensorlens.compare.probe import measured_text
from tensorlens.compare.probe.probes.registry import probe

if TYPE_CHECKING:
    from tensorlens.compare.probe.bench import Bench


TOO_LARGE = "does not run on a large x"
SECONDS, CALLS = 0.7, 200  # limits of the measurement of one operand's time
BATCH = 8  # inputs made at once; the first call of each batch is not counted
MEMORY = 100_000_000  # bytes that all x of a batch may take; its other tensors take several times that
MIN_SIZE = 200_000  # elements; on fewer the overhead of a call takes longer than its work
SMALLER = 16  # the ratio of the sizes of a large and a small x
GROWN = 4  # on an x `SMALLER` times as large: a cost that grows with x is 16 times as high, any other the same
MAX_SECONDS = 0.03  # of a call on the small x; if it is slower, both sizes are reduced


@probe("memory allocated", "cost", everywhere=False, level="detail")
def bytes_allocated(bench: Bench) -> Answer:
    """How much memory does the call allocate at most at one time, on a large x?"""
    subject = bench.subject(bench.large)
    own = max(1, subject.x.numel() * subject.x.element_size())
    try:
        most, kept = bench.allocated(lambda: bench.apply(subject).returned)
    except Exception as error:
        return measured_text.raised(error, TOO_LARGE)
    least = own / 1000  # the few bytes of a scalar do not count
    if most < least:
        return Answer(0, measured_text.amount(most) if most else "none")
    times = f"{measured_text.amount(most)}, {most / own:.1f} times x"
    return Answer(most, times if most - kept < own / 20 else f"{times}; kept: {measured_text.amount(max(kept, 0))}")


@probe("time per call", "cost", everywhere=False, level="detail")
def time_ratio(bench: Bench) -> Answer:
    """How long does a call take on a large x, relative to the fastest operand: its median, and the range of the middle
    half of the calls?"""
    try:
        bench.settle_allocator()
        spent = _times(bench, bench.large, SECONDS, CALLS)
    except Exception as error:
        return measured_text.raised(error, TOO_LARGE)
    low, middle, high = (spent[int(len(spent) * part)] for part in (0.25, 0.5, 0.75))
    return Answer(
        middle, f"{low} {middle} {high}"
    )  # nanoseconds: `comparison_rows` divides them by the fastest operand's


@probe("grows with x", "cost", everywhere=False, level="detail")
def cost_grows(bench: Bench) -> Answer | None:
    """Does a call take more time or memory on an x of 16 times as many elements?"""
    size = bench.elements(bench.large)
    if size < MIN_SIZE:
        return None
    try:
        time_grows = _time_grows(bench, size)
        small, large = (_allocated(bench, bench.of_size(size // times)) for times in (SMALLER, 1))
    except Exception:
        return None
    own = bench.bytes_of_large
    memory_grows = large > own / 20 and large > GROWN * small
    text = " and ".join(name for name, grows in (("time", time_grows), ("memory", memory_grows)) if grows)
    return Answer(text or "no", text or "no")


def _time_grows(bench: Bench, size: int) -> bool:
    small = _typical(bench, size // SMALLER)
    while small > MAX_SECONDS * 1e9 and size > SMALLER**2:
        size //= SMALLER
        small = _typical(bench, size // SMALLER)
    return _typical(bench, size) > GROWN * small


def _typical(bench: Bench, size: int) -> int:
    """Returns the nanoseconds of an undisturbed call: the first quartile."""
    spent = _times(bench, bench.of_size(size), SECONDS / 4, CALLS // 4)
    return spent[len(spent) // 4]


def _times(bench: Bench, spec: Input, seconds: float, calls: int) -> list[int]:
    """Returns the nanoseconds of each call, in ascending order."""
    spent: list[int] = []
    started = time.perf_counter()
    batch = max(2, min(BATCH, MEMORY // bench.bytes_of(spec)))
    while not spent or (len(spent) < calls and time.perf_counter() - started < seconds):
        subjects = [bench.subject(spec) for _ in range(batch)]  # before the calls, since making one evicts the caches
        bench.timed(subjects[0])
        for subject in subjects[1:]:
            spent.append(bench.timed(subject))
            if time.perf_counter() - started > seconds:
                break
    return sorted(spent)


def _allocated(bench: Bench, spec: Input) -> int:
    subject = bench.subject(spec)
    return bench.allocated(lambda: bench.apply(subject).returned)[0]
