"""Follows which samples loaders give: those drawn by weights with their labels, and those of parts of one data set."""

from __future__ import annotations

import weakref
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.utils.data import BatchSampler, Subset, WeightedRandomSampler

from tensorlens.records.training_samples import EvaluatedRows, SampledLabels
from tensorlens.tracer.isolation.readable import is_in_main_memory, is_measurable
from tensorlens.tracer.isolation.torch_originals import numel, reshape, tolist
from tensorlens.tracer.recording.recorder import Recorder

_MOST_SAMPLES = 20_000  # drawn ones that are counted
_MOST_ROWS = 1 << 18  # of a data set
_MOST_CLASSES = 32
_MOST_LOADERS = 64
_DEPTH = 8  # parts of parts
_WHOLE = (torch.int64, torch.int32, torch.uint8, torch.bool)


@dataclass(slots=True)
class _Draws:
    """The samples that a sampler has drawn by its weights."""

    sampler: weakref.ref[Any]
    site: int | None
    weights: int
    places: list[int]  # of each sample, the place of its weight in `values`
    values: list[float]
    labels: int | None = None
    counts: Counter[tuple[int, int]] = field(default_factory=Counter)  # (place of a weight, label)
    total: int = 0


@dataclass(slots=True)
class _Part:
    """A part of a data set that a loader has given without a backward pass."""

    data: weakref.ref[Any]
    site: int | None
    trained_site: int | None = None
    samples: int = 0
    trained: int = 0
    evaluated: set[int] = field(default_factory=set)
    again: set[int] = field(default_factory=set)


@dataclass(slots=True)
class _Trained:
    """The samples of a data set that backward passes have used, and a part of it: a list has no weak references."""

    part: weakref.ref[Any]
    rows: set[int] = field(default_factory=set)
    site: int | None = None
    last: int = 0  # the greatest number among the samples of these parts


@dataclass(slots=True)
class _Waiting:
    """A batch of which it is not known yet whether a backward pass uses it."""

    data: Any
    rows: list[int]
    passes: int
    site: int | None


class LoadedSamples:
    """Follows the loaders of one run."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._indices: weakref.WeakKeyDictionary[Any, deque[object]] = weakref.WeakKeyDictionary()
        self._waiting: weakref.WeakKeyDictionary[Any, _Waiting] = weakref.WeakKeyDictionary()
        self._draws: list[_Draws] = []
        self._parts: list[_Part] = []
        self._trained: dict[int, _Trained] = {}  # by the id of the data set
        self._training: set[int] = set()  # ids of the parts that backward passes use
        self.passes = 0

    def optimizer_made(self) -> None:
        """Notes that another optimizer begins: its parameters may be those of a new model."""
        self._trained.clear()
        self._training.clear()

    def asked(self, loading: Any, index: object) -> None:
        """Notes the samples that a loader asks for next.

        Workers may give batches in another order, and those that go on in the next epoch drop what was asked before.
        """
        if getattr(loading, "_in_order", True) and not loading._persistent_workers:
            self._indices.setdefault(loading, deque()).append(index)

    def failed(self, loading: Any) -> None:
        """Notes that the samples which a loader asked for first raise an exception, or that there are no more."""
        asked = self._indices.get(loading)
        if asked:
            asked.popleft()

    def begins(self, loading: Any) -> None:
        """Notes that a loader goes on: what it gave before was used, or not."""
        waiting = self._waiting.pop(loading, None)
        if waiting is not None:
            self._settle(waiting)

    def given(self, loading: Any, batch: object, site: int | None) -> None:
        """Notes a batch that a loader gives."""
        asked = self._indices.get(loading)
        index = asked.popleft() if asked else None
        if not isinstance(index, list) or not all(type(each) is int for each in index):
            return
        self._draw(loading, index, batch, site)
        data = loading._dataset
        if isinstance(data, Subset):
            self._waiting[loading] = _Waiting(data, index, self.passes, site)

    # --- weights ------------------------------------------------------------------------------------------------------

    def _draw(self, loading: Any, index: Sequence[int], batch: object, site: int | None) -> None:
        batches = loading._index_sampler
        sampler = batches.sampler if type(batches) is BatchSampler else None
        if type(sampler) is not WeightedRandomSampler:
            return
        draws = self._draws_of(sampler, site)
        if draws is None or draws.total >= _MOST_SAMPLES or max(index) >= len(draws.places):
            return
        columns = [*_labels(batch, len(index))]
        if len(columns) != 1:  # the weights may be for another column
            return
        (labels,) = columns
        if draws.labels is None:
            draws.labels = self._recorder.tensor_ids.id_of(labels)
        draws.total += len(index)
        numbers = tolist(reshape(labels, (-1,)))
        draws.counts.update((draws.places[place], int(each)) for place, each in zip(index, numbers, strict=True))

    def _draws_of(self, sampler: Any, site: int | None) -> _Draws | None:
        known = next((each for each in self._draws if each.sampler() is sampler), None)
        weights = sampler.weights
        if known is not None or len(self._draws) >= _MOST_LOADERS or not isinstance(weights, torch.Tensor):
            return known
        number = self._recorder.tensor_ids.find(weights)
        if number is None or not is_measurable(weights) or weights.dim() != 1 or numel(weights) > _MOST_ROWS:
            return None
        all_values = tolist(weights)
        values = sorted({*all_values})
        if not 2 <= len(values) <= _MOST_CLASSES:
            return None
        places = {value: place for place, value in enumerate(values)}
        draws = _Draws(weakref.ref(sampler), site, number, [places[value] for value in all_values], values)
        self._draws.append(draws)
        return draws

    # --- parts --------------------------------------------------------------------------------------------------------

    def _settle(self, waiting: _Waiting) -> None:
        root, rows = _rows(waiting.data, waiting.rows)
        if rows is None or root is None:
            return
        known = self._trained.get(id(root))
        if known is None or _rows(known.part(), ())[0] is not root:
            known = self._trained[id(root)] = _Trained(weakref.ref(waiting.data))
        if self.passes > waiting.passes:
            if len(known.rows) < _MOST_ROWS:
                known.rows.update(rows)
            known.site = waiting.site
            if id(waiting.data) not in self._training:
                self._training.add(id(waiting.data))
                known.last = max(known.last, _last_row(waiting.data))
        elif known.rows and not any(id(part) in self._training for part in _parts(waiting.data)):
            part = self._part(waiting)
            if part is not None:
                part.trained_site, part.trained = known.site, max(part.trained, len(known.rows))
                part.samples = max(part.samples, known.last + 1)
                part.evaluated.update(rows)
                part.again.update(known.rows.intersection(rows))

    def _part(self, waiting: _Waiting) -> _Part | None:
        known = next((each for each in self._parts if each.data() is waiting.data), None)
        if known is None and len(self._parts) < _MOST_LOADERS:
            known = _Part(weakref.ref(waiting.data), waiting.site, samples=_last_row(waiting.data) + 1)
            self._parts.append(known)
        return known

    def write(self, number: int) -> None:
        """Writes what was found so far."""
        write = self._recorder.rows.write_fact
        for each in self._draws:
            if each.labels is None:
                continue
            names = sorted({label for _, label in each.counts})
            counts = Counter(each.places)
            drawn = tuple(each.counts[place, label] for place in range(len(each.values)) for label in names)
            of_weights = tuple(counts[place] for place in range(len(each.values))), tuple(each.values)
            if len(names) <= _MOST_CLASSES:
                numbers = number, each.site, each.weights, each.labels, len(each.places)
                write(SampledLabels, *numbers, *of_weights, drawn, tuple(names))
        for part in self._parts:
            if part.samples and part.trained:
                sizes = part.samples, part.trained, len(part.evaluated), len(part.again)
                write(EvaluatedRows, number, part.site, part.trained_site, *sizes)


def _labels(batch: object, size: int) -> Iterator[torch.Tensor]:
    """Yields the whole numbers that a batch has for each of its samples."""
    for item in _items(batch):
        if type(item) is torch.Tensor and item.dtype in _WHOLE and item.shape in ((size,), (size, 1)):
            if is_in_main_memory(item):
                yield item


def _items(batch: object) -> list[object]:
    """Returns the items of a batch, without a method of a class of the program."""
    if isinstance(batch, dict):
        return list(dict.values(batch))
    if isinstance(batch, tuple):
        return list(tuple.__iter__(batch))
    return list(list.__iter__(batch)) if isinstance(batch, list) else []


def _parts(data: Any) -> Iterator[Any]:
    """Yields a part of a data set, and the parts that it is a part of."""
    for _ in range(_DEPTH):
        if not isinstance(data, Subset):
            return
        yield data
        data = vars(data).get("dataset")


def _rows(data: Any, rows: Sequence[int]) -> tuple[Any, list[int] | None]:
    """Returns the data set that a part is of, and the numbers of samples in it."""
    for part in _parts(data):
        indices = vars(part).get("indices")
        if type(indices) not in (list, range) and type(indices).__name__ != "ndarray":
            return None, None
        rows = [int(indices[row]) for row in rows]
        data = vars(part).get("dataset")
    return data, [*rows]


def _last_row(data: Any) -> int:
    """Returns the greatest number, in its whole data set, of a sample of a part."""
    indices = vars(data).get("indices")
    size = len(indices) if type(indices) in (list, range) or type(indices).__name__ == "ndarray" else 0
    return max(_rows(data, range(min(size, _MOST_ROWS)))[1] or [0])
