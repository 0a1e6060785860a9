"""Looks at the ids that embeddings with a `padding_idx` get: whether the padding is between other ids of a row."""

from __future__ import annotations

import weakref
from dataclasses import dataclass, field

import torch

from tensorlens.records.training_values import PaddedIds
from tensorlens.tracer.isolation.readable import may_read
from tensorlens.tracer.recording.recorder import Recorder

_MOST_LOOKS = 50  # of an embedding
_MOST_WEIGHTS = 1_000
_CLEAR = 4  # times as many
_MOST_IDS = 1 << 16  # of a look
_WHOLE = frozenset((torch.int64, torch.int32))


@dataclass(slots=True)
class _Rows:
    """Counts as in `PaddedIds`."""

    rows: int = 0
    inner: int = 0
    places: int = 0
    padded: int = 0
    outer: int = 0
    runs: int = 0
    begins: set[int] = field(default_factory=set)
    ends: set[int] = field(default_factory=set)
    width: int = 0

    def add(self, real: torch.Tensor, padded: torch.Tensor, inside: torch.Tensor) -> None:
        """Adds the rows of a look-up. `real`: where an id is not the padding; `padded`: where it is, between others."""
        begins, ends = padded[:, 1:] & real[:, :-1], padded[:, :-1] & real[:, 1:]
        self.rows += len(real)
        self.inner += int(padded.any(1).sum())
        self.places += int(inside.sum())
        self.padded += int(padded.sum())
        self.outer += int((~inside & real.any(1, keepdim=True)).sum())
        self.runs += int(begins.sum())
        self.begins.update(begins.any(0).nonzero().flatten().tolist())
        self.ends.update(ends.any(0).nonzero().flatten().tolist())
        self.width = max(self.width, real.shape[1])


@dataclass(slots=True)
class _Seen:
    ref: weakref.ref[torch.Tensor]
    weight: int
    padding: int
    site: int | None = None
    looks: int = 0
    rows: _Rows = field(default_factory=_Rows)


class LookedUpIds:
    """Counts the ids that a run looks up in embeddings with a padding, while gradients are on."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._seen: dict[int, _Seen] = {}  # by the id of the weight, which a later one may have
        self._all: list[_Seen] = []

    def look(self, ids: object, weight: object, padding: int, site: int | None) -> None:
        """Looks at the ids of a call, of shape (batch, time) or (time, batch)."""
        if not isinstance(ids, torch.Tensor) or not isinstance(weight, torch.Tensor) or not torch.is_grad_enabled():
            return
        if any(torch._C._functorch.is_functorch_wrapped_tensor(each) for each in (ids, weight)):
            return  # its values have no number outside `vmap`
        if ids.dtype not in _WHOLE or ids.dim() != 2 or not 0 < ids.numel() <= _MOST_IDS or not may_read(ids):
            return
        seen = self._of(weight, padding if padding >= 0 else weight.shape[0] + padding)
        if seen is None or seen.looks >= _MOST_LOOKS:
            return
        real = ids != seen.padding
        seen.looks += 1
        seen.site = site
        rows, columns = ((each, *_inside(each)) for each in (real, real.t()))
        seen.rows.add(*(columns if _is_clear(columns, int(rows[1].sum())) else rows))

    def _of(self, weight: torch.Tensor, padding: int) -> _Seen | None:
        seen = self._seen.get(id(weight))
        if seen is not None and seen.ref() is weight:
            return seen if seen.padding == padding else None
        number = self._recorder.tensor_ids.find(weight)
        if number is None or len(self._all) >= _MOST_WEIGHTS:
            return None
        self._seen[id(weight)] = seen = _Seen(weakref.ref(weight), number, padding)
        self._all.append(seen)
        return seen

    def write(self, number: int) -> None:
        """Writes what was seen so far."""
        for each in self._all:
            found = each.rows
            if found.inner:
                counts = each.padding, found.rows, found.inner, found.places, found.padded
                runs = found.runs, min(len(found.begins), len(found.ends)), found.width
                self._recorder.rows.write_fact(PaddedIds, number, each.weight, each.site, *counts, found.outer, *runs)


def _is_clear(columns: tuple[torch.Tensor, torch.Tensor, torch.Tensor], least: int) -> bool:
    """Returns whether columns are the sequences, as where the time comes first: fewer paddings are between other ids
    than in rows, and more are before and after them."""
    real, padded, inside = columns
    between = int(padded.sum())
    return between < least and int((~inside & real.any(1, keepdim=True)).sum()) > _CLEAR * between


def _inside(real: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns where the padding is between other ids of a row, and which places are from its first to its last."""
    inside = real.cummax(1).values & real.flip(1).cummax(1).values.flip(1)
    return inside & ~real, inside
