"""Finds lines whose results are kept from step to step, by the memory that a run with `--training` looked at."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from math import prod

from tensorlens.analysis.naming.places import Place, place_of
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.records.model import Call
from tensorlens.records.training import HeldMemory

MIN_LOOKS = 4
MIN_BYTES = 64 * 1024
MIN_BYTES_OF_SMALL = 16 * 1024**2  # of single numbers and small results, as in a log or a replay memory
_SMALL = 4 * 1024  # bytes; a result of `mse_loss()` is a single number, and uses as much memory as its input
MOST_LINES = 3


@dataclass(frozen=True, slots=True)
class Amount:
    """Counts the results of one line that are alive at a look, and older than the step before it."""

    step: int
    tensors: int
    size: int  # bytes


@dataclass(frozen=True, slots=True)
class Growth:
    """A line whose live results were more at each look."""

    calls: tuple[Call, ...]  # that made what was alive at the last look, in order
    amounts: tuple[Amount, ...]
    graphs: int  # of the results at the last look, those with a graph


def growths(facts: TraceIndex) -> Iterator[Growth]:
    """Yields these lines, that of the most memory first. Most of the results keep a graph, or they have at least
    `MIN_BYTES`, and `MIN_BYTES_OF_SMALL` if they are small."""
    looks = [look for look in facts.trace.inspection.memory if look.step > 1 and not look.begun]
    found = [_growth(facts, looks, place) for place in (_by_line(facts, looks[-1]) if looks else ())]
    yield from sorted(filter(None, found), key=lambda growth: -growth.amounts[-1].size)


def _growth(facts: TraceIndex, looks: list[HeldMemory], place: Place) -> Growth | None:
    at_looks = [_by_line(facts, look).get(place, {}) for look in looks]
    amounts = tuple(Amount(look.step, len(at), sum(at.values())) for look, at in zip(looks, at_looks, strict=True))
    if len(amounts) < MIN_LOOKS or not all(a.tensors < b.tensors and a.size < b.size for a, b in pairwise(amounts)):
        return None
    last, graphs = at_looks[-1], set(looks[-1].graphs)
    calls = tuple(call for number in sorted(last) if (call := facts.creator(number)) is not None)
    held = len(graphs & last.keys())
    are_numbers = all(prod(facts.tensor(number).shape) == 1 for number in last)
    size = amounts[-1].size
    least = MIN_BYTES_OF_SMALL if are_numbers or size < _SMALL * len(last) else MIN_BYTES
    return Growth(calls, amounts, held) if 2 * held > len(last) or size >= least else None


def _by_line(facts: TraceIndex, look: HeldMemory) -> dict[Place, dict[int, int]]:
    """Maps lines to the older tensors that they made and that were alive at a look, with their bytes."""
    lines: dict[Place, dict[int, int]] = defaultdict(dict)
    for number, size in list(zip(look.tensors, look.sizes, strict=True))[: look.older]:
        made = facts.creator(number)
        if made is not None and not made.within:
            lines[place_of(facts.trace.sites[made.site])][number] = size
    return lines


@dataclass(frozen=True, slots=True)
class MostMemory:
    """The look that found the most memory, and the lines with the largest parts: (site, bytes)."""

    look: HeldMemory
    made: list[tuple[int, int]]  # of live tensors, by the lines that made them
    saved: list[tuple[int, int]]  # of what only graphs hold, by the lines that saved it


def most_memory(facts: TraceIndex) -> MostMemory | None:
    """Finds the look at the most memory, of live tensors and of graphs; None without one."""
    look = max(facts.trace.inspection.memory, key=lambda each: each.size + each.saved, default=None)
    if look is None or not look.size + look.saved:
        return None
    unheld = set(look.unheld)
    live = [(number, size) for number, size in zip(look.tensors, look.sizes, strict=True) if number not in unheld]
    made = _largest(facts, ((facts.creator(number), size) for number, size in live))
    return MostMemory(look, made, saved_by_line(facts, look)[:MOST_LINES])


def saved_by_line(facts: TraceIndex, look: HeldMemory) -> list[tuple[int, int]]:
    """Returns what only graphs hold, by the lines whose calls made the nodes: (site, bytes), the most first."""
    nodes = zip(look.nodes, look.saved_sizes, strict=True)
    return _largest(facts, ((facts.call_of_node(node, look.index), size) for node, size in nodes), None)


def _largest(
    facts: TraceIndex, parts: Iterable[tuple[Call | None, int]], most: int | None = MOST_LINES
) -> list[tuple[int, int]]:
    sizes: dict[Place, int] = defaultdict(int)
    sites: dict[Place, int] = {}
    for call, size in parts:
        if call is not None:
            place = place_of(facts.trace.sites[call.site])
            sizes[place] += size
            sites.setdefault(place, call.site)
    return [(sites[place], sizes[place]) for place in sorted(sizes, key=lambda place: -sizes[place])[:most]]


def bytes_text(size: int) -> str:
    """Returns a size as a person reads it: "320 bytes", "4.2 kB", "1.5 MB"."""
    if size < 1_000:
        return f"{size} byte{'' if size == 1 else 's'}"
    for unit, each in (("kB", 1e3), ("MB", 1e6), ("GB", 1e9)):
        if size < 1_000 * each:
            return f"{size / each:.3g} {unit}"
    return f"{size / 1e12:.3g} TB"
