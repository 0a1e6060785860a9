"""Bounds the memory of a long run: keeps its last calls, and earlier ones that explain tensors that are still alive.

Calls are kept as they are in the journal, which is small; `TraceBuilder` makes them into records. A call that leaves
the window is dropped, unless it made a tensor that is still alive or was one of the last to change it. So the line that
made a parameter is known even after a million steps. With `--training`, the tensors of the first calls count as alive.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any

from tensorlens.journal import compact_calls
from tensorlens.journal.call_runs import Call, CallRun, Item, results_of, tensors_of
from tensorlens.journal.changed_tensors import ChangedTensors
from tensorlens.journal.compact_calls import numbers_of
from tensorlens.journal.ended_passes import EndedPass
from tensorlens.journal.explaining_calls import ExplainingCalls, storages_of
from tensorlens.journal.memory_rows import TensorKind, TensorRow
from tensorlens.journal.rows import NONE, CallRow, of_alias

WINDOW = 20_000  # calls
TRAINING_WINDOW = 100_000  # with `--training`: most of its sentences need the whole course of a run
BEGINNING = 3_000  # calls that make the model and run its first steps: with `--training` they stay
_OTHERS = 5_000  # events of other kinds that outlive the window
OLDER = 20_000  # calls in a trace from before the window
_PATIENCE = 3  # windows: without a census, the older calls leave when there are so many calls


class Retention:
    """Keeps the last `size` items of a run, and the earlier calls that explain a live tensor.

    Many items leave the window together. The best moment is a census of live tensors (`forget_all_but`): then only the
    calls that explain one of these are kept. A census also removes the dead tensors from `tensors`.

    A compact call is kept as the bytes of its ints.
    """

    def __init__(self, size: int, tensors: dict[int, TensorRow | TensorKind]) -> None:
        self._size = size
        self._beginning = BEGINNING if size == TRAINING_WINDOW else 0
        self._early: set[int] = set()  # the tensors of the calls that always stay
        self._tensors = tensors
        self._recent: deque[Item | CallRun] = deque()
        self._count = 0  # of the calls and other events in `_recent`
        self._explaining = ExplainingCalls()
        self._others: deque[Item] = deque(maxlen=_OTHERS)
        self._changed = ChangedTensors()
        self._of_aliases: list[int] = []  # storages of the aliases in the window, at the last census
        self.left_out = 0  # calls that the last `items` have left out

    def add(self, index: int, content: Any, within: str) -> None:
        """Adds the next call or event of the run."""
        self._recent.append((index, content, within))
        self._count += 1
        self._bound()

    def add_run(self, run: CallRun) -> None:
        """Adds the next compact calls of the run."""
        self._recent.append(run)
        self._count += run.stop - run.start
        self._bound()

    def _bound(self) -> None:
        if self._count > _PATIENCE * self._size:
            self._retire(self._leaving())

    def _leaving(self) -> list[Item | CallRun]:
        """Takes the items that are older than the window out of it."""
        leaving: list[Item | CallRun] = []
        surplus = self._count - self._size
        while surplus > 0:
            item = self._recent.popleft()
            count = item.stop - item.start if isinstance(item, CallRun) else 1
            if isinstance(item, CallRun) and count > surplus:
                cut = item.start + surplus
                ends = item.ends[: 4 * cut]
                self._recent.appendleft(CallRun(item.index, item.calls, item.ends, item.within, cut))
                item = CallRun(item.index, item.calls, ends, item.within, item.start)
                count = surplus
            self._note_early(item)
            leaving.append(item)
            self._count -= count
            surplus -= count
        runs = [item for item in leaving if isinstance(item, CallRun)]
        self._changed.add(runs, [item[1] for item in leaving if type(item) is tuple and type(item[1]) is CallRow])
        return leaving

    def _note_early(self, item: Item | CallRun) -> None:
        """Remembers the tensors of a call from the beginning of the run: they count as alive."""
        if isinstance(item, CallRun):
            stop = min(item.stop, self._beginning - item.index)
            if stop > item.start:
                compact_calls.add_tensors(item.calls, item.ends, item.start, stop, self._early)
        elif type(item[1]) is CallRow and item[0] < self._beginning:
            self._early.update(item[1].inputs[::2], results_of(item[1]))

    def _retire(self, leaving: list[Item | CallRun], needed: set[int] | None = None) -> None:
        """Keeps those of the leaving calls that explain a tensor in `needed`, or any tensor if that is None."""
        for item in leaving:
            if isinstance(item, CallRun):
                self._explaining.add_run(item, needed)
            elif type(item[1]) is CallRow:
                results = results_of(item[1])
                chosen = results if needed is None else filter(needed.__contains__, results)
                self._explaining.add_to_each(chosen, item)
            elif type(item[1]) is not EndedPass:
                self._others.append(item)

    def last(self) -> Any:
        """Returns the last item if it is an event that was added alone; None otherwise."""
        item = self._recent[-1] if self._recent else None
        return item[1] if isinstance(item, tuple) else None

    def replace_last(self, content: Any) -> None:
        """Puts another event in the place of the last one."""
        last = self._recent.pop()
        if isinstance(last, tuple):
            self._recent.append((last[0], content, last[2]))

    def forget_all_but(self, alive: Iterable[int]) -> None:
        """Drops the calls that explain only dead tensors. `alive` are the ids of all others."""
        leaving, needed = self._leaving(), {*alive, *self._early}
        needed |= self._changed.latest(needed)
        for item in self._recent:
            if isinstance(item, CallRun):
                compact_calls.add_tensors(item.calls, item.ends, item.start, item.stop, needed)
            elif type(item[1]) is CallRow:
                needed.update(item[1].inputs[::2], results_of(item[1]))
        self._of_aliases = [of_alias(base) for base in needed if base < NONE]
        self._retire(leaving, needed)
        self._explaining.forget_all_but(needed)
        compact_calls.keep_only(self._tensors, needed)

    def storages(self) -> set[int | None]:
        """Returns the storages in the states of the calls that are kept, and those of aliases."""
        found = self._explaining.storages()
        found.update(self._of_aliases)
        for item in self._recent:
            if isinstance(item, tuple):
                found.update(storages_of(item[1]))
        return found

    def kept_calls(self) -> set[int]:
        """Returns the indices of the calls that are kept from before the window."""
        return self._explaining.indices()

    def oldest_event(self) -> int:
        """Returns the index before which no event is kept, except calls."""
        if self._others:
            return self._others[0][0]
        first = next(iter(self._recent), None)
        return first.index + first.start if isinstance(first, CallRun) else 0 if first is None else first[0]

    def items(self, named: set[int]) -> list[Item]:
        """Returns what a trace has of all that is kept, in the order of the run. A compact call is a tuple of ints.

        Of the calls before the window there are `OLDER` at most: those that lead to the tensors in `named`, to tensors
        that were changed, to the calls in the window, then the latest. `left_out` counts the others.
        """
        self._retire(self._leaving())
        self._explaining.pack()
        indices = self._explaining.indices()
        self.left_out = max(len(indices) - OLDER, 0)
        oldest = min(heapq.nlargest(OLDER, indices), default=0)
        del indices  # a wide run has a hundred thousand
        kept = {item[0]: item for item in _first(self._chosen(named, oldest), OLDER)}
        kept.update((item[0], item) for item in self._others)
        found = [_readable(kept.pop(index)) for index in sorted(kept)]
        for item in self._recent:
            found += item.items() if isinstance(item, CallRun) else [item]
        return found

    def _chosen(self, named: set[int], oldest: int) -> Iterator[Item]:
        """Yields the calls before the window that a trace has room for, the most important first; some of them again.

        `oldest` is the index of the first call that would be in the trace if the latest ones were the most important.
        """
        if self.left_out:
            yield from self._leading_to(named)
        latest = self._explaining.since(oldest)
        yield from (latest[index] for index in sorted(latest, reverse=True))

    def _leading_to(self, named: set[int]) -> list[Item]:
        """Finds the calls before the window that led to `named` tensors, to changed ones, then those to the window."""
        recent: set[int] = set()
        for item in self._recent:
            if isinstance(item, CallRun):
                compact_calls.add_tensors(item.calls, item.ends, item.start, item.stop, recent)
            elif type(item[1]) is CallRow:
                recent.update(tensors_of(item[1]))
        found: list[Item] = []
        seen: set[int] = set()
        followed: set[int] = set()
        for tensors in (named, self._changed.latest(), recent):
            waiting = sorted(tensors, reverse=True)
            while waiting and len(found) < OLDER:
                tensor = waiting.pop()
                if tensor not in seen:
                    seen.add(tensor)
                    items = [item for item in self._explaining.of(tensor) if item[0] not in followed]
                    followed.update([item[0] for item in items])  # one call may have made thousands of tensors
                    found += items
                    waiting += [each for item in items for each in tensors_of(_readable(item)[1])]
        return found

    def dropped_nodes(self) -> dict[int, tuple[int, Call]]:
        """Returns for each tensor the last dropped call that gave it a node, with its index."""
        return self._explaining.dropped_nodes()


def _first(items: Iterable[Item], count: int) -> Iterator[Item]:
    """Yields the first items with different indices, `count` of them at most."""
    seen: set[int] = set()
    for item in items:
        if item[0] not in seen:
            seen.add(item[0])
            yield item
        if len(seen) == count:  # the next ones are not looked for
            return


def _readable(item: Item) -> Item:
    index, content, within = item
    return (index, numbers_of(content), within) if type(content) is bytes else item
