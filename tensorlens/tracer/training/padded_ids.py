"""Looks at the ids that embeddings with a `padding_idx` get: whether the padding is between other ids of a row."""

from __future__ import annotations

import weakref
from dataclasses import dataclass, field

import torch

from tensorlens.records.training_values import PaddedIds
from tensorlens.tracer.isolation.readable import may_read
from tensorlens.tracer.recording.recorder import Recorder

_MOST_LOOKS = 50  # of an embedding
_MOST_IDS = 1 << 16  # of a look
_WHOLE = frozenset((torch.int64, torch.int32))


@dataclass(slots=True)
class _Rows:
    """Counts as in `PaddedIds`, if the sequences are along one of the two dimensions."""

    rows: int = 0
    inner: int = 0
    places: int = 0
    padded: int = 0

    def add(self, real: torch.Tensor) -> None:
        """Adds rows. `real`: where an id is not the padding."""
        inside = real.cummax(1).values & real.flip(1).cummax(1).values.flip(1)
        padded = inside & ~real
        self.rows += len(real)
        self.inner += int(padded.any(1).sum())
        self.places += int(inside.sum())
        self.padded += int(padded.sum())


@dataclass(slots=True)
class _Seen:
    ref: weakref.ref[torch.nn.Embedding]
    weight: int
    padding: int
    site: int | None = None
    looks: int = 0
    along: tuple[_Rows, _Rows] = field(default_factory=lambda: (_Rows(), _Rows()))


class LookedUpIds:
    """Counts the ids that the embeddings of a run look up while gradients are on."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._seen: dict[int, _Seen] = {}  # by the id of the module, which a later one may have
        self._all: list[_Seen] = []

    def look(self, module: torch.nn.Embedding, ids: object, site: int | None) -> None:
        """Looks at the ids of a call, of shape (batch, time) or (time, batch)."""
        padding = module.padding_idx
        if padding is None or not isinstance(ids, torch.Tensor) or not torch.is_grad_enabled():
            return
        if torch._C._functorch.is_functorch_wrapped_tensor(ids):
            return  # its values have no number outside `vmap`
        if ids.dtype not in _WHOLE or ids.dim() != 2 or not 0 < ids.numel() <= _MOST_IDS or not may_read(ids):
            return
        seen = self._of(module, padding)
        if seen is None or seen.looks >= _MOST_LOOKS:
            return
        real = ids != padding
        seen.looks += 1
        seen.along[0].add(real)
        seen.along[1].add(real.t())  # the time may come first
        seen.site = site

    def _of(self, module: torch.nn.Embedding, padding: int) -> _Seen | None:
        seen = self._seen.get(id(module))
        if seen is not None and seen.ref() is module:
            return seen
        number = self._recorder.tensor_ids.find(module.weight)
        if number is None:
            return None
        self._seen[id(module)] = seen = _Seen(weakref.ref(module), number, padding)
        self._all.append(seen)
        return seen

    def write(self, number: int) -> None:
        """Writes what was seen so far."""
        for each in self._all:
            found = min(each.along, key=lambda rows: rows.padded)  # in the other layout, padding is between ids, too
            if found.inner:
                counts = each.padding, found.rows, found.inner, found.places, found.padded
                self._recorder.rows.write_fact(PaddedIds, number, each.weight, each.site, *counts)
