"""Finds optimizers that step with averages which another one kept for other values, by checksums of both."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from struct import pack
from zlib import crc32

import torch

from tensorlens.records.training_values import ReorderedAverages
from tensorlens.tracer.isolation.readable import is_measurable
from tensorlens.tracer.isolation.torch_originals import detach, numel, reshape, to, tolist
from tensorlens.tracer.recording.recorder import Recorder

_MOST_DICTS = 200  # state dicts of a run that are looked at
_MOST_KEPT = 16  # the last ones
_MOST_PARAMETERS = 400
_ELEMENTS = 64  # of a tensor that are compared
_Pair = tuple[int | None, int | None]  # checksums of the values of a parameter, and of its averages


class StateOrders:
    """Compares the state dicts that optimizers have made with what others have when they step after a load."""

    def __init__(self, recorder: Recorder, count_of: Callable[[torch.optim.Optimizer], tuple[int, int, int]]) -> None:
        self._recorder = recorder
        self._count_of = count_of
        self._looks = 0
        self._made: list[tuple[int, str, list[_Pair]]] = []  # the number and the type of an optimizer, its parameters
        self._loaded: dict[int, int | None] = {}  # by the number of an optimizer: the line that has loaded its state

    def made(self, optimizer: torch.optim.Optimizer) -> None:
        """Notes the values and the averages of an optimizer that makes a state dict."""
        number, steps, _ = self._count_of(optimizer)
        self._looks += 1
        if steps and self._looks <= _MOST_DICTS:
            self._made = [*self._made, (number, type(optimizer).__name__, list(_pairs(optimizer)))][-_MOST_KEPT:]

    def loading(self, optimizer: torch.optim.Optimizer, site: int | None) -> None:
        if self._made:
            self._loaded[self._count_of(optimizer)[0]] = site

    def step_begins(self, optimizer: torch.optim.Optimizer) -> None:
        """Writes a fact if the first step after a load uses averages for other values than those of the dict."""
        number = self._count_of(optimizer)[0] if self._loaded else -1
        if number not in self._loaded:
            return
        site, name = self._loaded.pop(number), type(optimizer).__name__
        with self._recorder.quiet():
            now = list(_pairs(optimizer))
        earlier = [(other, pairs) for other, kind, pairs in self._made if kind == name and len(pairs) == len(now)]
        if any(pairs == now for _, pairs in earlier):
            return
        for other, pairs in reversed(earlier):
            moved = _moved(pairs, now)
            if moved and other != number:
                self._recorder.rows.write_fact(ReorderedAverages, site, (number, other), (moved, len(now)))
                return


def _moved(before: list[_Pair], now: list[_Pair]) -> int:
    """Returns how many parameters have values that were at another place, and the averages that are at their own."""
    counts = Counter(value for value, _ in before), Counter(value for value, _ in now)
    places = {value: place for place, (value, _) in enumerate(before) if value is not None}
    moved = 0
    for place, (value, averages) in enumerate(now):
        old = places.get(value) if value is not None else None
        is_one = counts[0][value] == counts[1][value] == 1
        if old is None or old == place or averages is None or not is_one:
            continue
        moved += averages == before[place][1] != before[old][1]
    return moved


def _pairs(optimizer: torch.optim.Optimizer) -> Iterator[_Pair]:
    held = [each for options in optimizer.param_groups for each in options["params"][:_MOST_PARAMETERS]]
    for parameter in held[:_MOST_PARAMETERS]:
        state = optimizer.state.get(parameter)
        parts = state if type(state) is dict else {}
        names = sorted(name for name in parts if type(name) is str)
        averages = [_checksum(parts[name]) for name in names if _is_like(parts[name], parameter)]
        known = [each for each in averages if each is not None]
        yield _checksum(parameter), crc32(pack(f"{len(known)}I", *known)) if known else None


def _is_like(value: object, parameter: torch.Tensor) -> bool:
    return type(value) in (torch.Tensor, torch.nn.Parameter) and value.shape == parameter.shape  # type: ignore[attr-defined]


def _checksum(tensor: torch.Tensor) -> int | None:
    """Returns a checksum of the first elements of a tensor; None if it cannot be read, or all of them are equal."""
    is_plain = type(tensor) in (torch.Tensor, torch.nn.Parameter) and tensor.dtype.is_floating_point
    if not is_plain or not is_measurable(tensor) or not tensor.is_contiguous() or not numel(tensor):
        return None
    values = tolist(to(reshape(detach(tensor), (-1,))[:_ELEMENTS], "cpu", torch.float64))
    return crc32(pack(f"{len(values)}d", *values)) if len(set(values)) > 1 or len(values) == 1 else None
