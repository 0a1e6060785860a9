"""Looks at the ids that embeddings with a `padding_idx` get: whether the padding is between other ids of a row."""

from __future__ import annotations

import weakref
from dataclasses import dataclass

import torch

from tensorlens.records.training_values import PaddedIds
from tensorlens.tracer.isolation.readable import may_read
from tensorlens.tracer.recording.recorder import Recorder

_MOST_LOOKS = 50  # of an embedding
_MOST_IDS = 1 << 16  # of a look
_WHOLE = frozenset((torch.int64, torch.int32))


@dataclass(slots=True)
class _Seen:
    ref: weakref.ref[torch.nn.Embedding]
    weight: int
    padding: int
    site: int | None = None
    looks: int = 0
    rows: int = 0
    inner: int = 0
    places: int = 0
    padded: int = 0


class LookedUpIds:
    """What the embeddings of a run were asked for, while gradients were on."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._seen: dict[int, _Seen] = {}  # by the id of the module, which a later one may have
        self._all: list[_Seen] = []

    def look(self, module: torch.nn.Embedding, ids: object, site: int | None) -> None:
        """Looks at the ids of a call. The last dimension is a row: a sequence."""
        padding = module.padding_idx
        if padding is None or not isinstance(ids, torch.Tensor) or not torch.is_grad_enabled():
            return
        if torch._C._functorch.is_functorch_wrapped_tensor(ids):
            return  # its values have no number outside `vmap`
        if ids.dtype not in _WHOLE or ids.dim() < 2 or not 0 < ids.numel() <= _MOST_IDS or not may_read(ids):
            return
        seen = self._of(module, padding)
        if seen is None or seen.looks >= _MOST_LOOKS:
            return
        real = (ids != padding).reshape(-1, ids.shape[-1])
        inside = real.cummax(1).values & real.flip(1).cummax(1).values.flip(1)
        padded = inside & ~real
        seen.looks += 1
        seen.rows += len(real)
        seen.inner += int(padded.any(1).sum())
        seen.places += int(inside.sum())
        seen.padded += int(padded.sum())
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
            if each.inner:
                counts = each.padding, each.rows, each.inner, each.places, each.padded
                self._recorder.rows.write_fact(PaddedIds, number, each.weight, each.site, *counts)
