"""Whether a checkpointed function computes in backward what it computed in the forward pass, and whether backward then
uses what it saved as it was saved.

A checkpoint compares shapes and types of what its two runs save; here a few values of each saved tensor are compared as
well, and the first that differ are written down. What the second run saves is handed to backward without a check of its
version: the versions are noted when it is saved and compared when it is used.
"""

from __future__ import annotations

import functools
import math
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils import checkpoint

from tensorlens.journal.rows import NONE, NOTICED
from tensorlens.records.observations import RECOMPUTED
from tensorlens.tracer.isolation.guard import ErrorGuard
from tensorlens.tracer.isolation.muted_dispatch import MutedDispatch, has_torch_dispatch
from tensorlens.tracer.isolation.torch_originals import (
    clone,
    detach,
    every,
    is_contiguous,
    isclose,
    numel,
    reshape,
    some,
)
from tensorlens.tracer.recording.recorder import Recorder, version_of
from tensorlens.tracer.recording.tensor_ids import is_fake
from tensorlens.tracer.recording.tensor_text import SHOWN_VALUES, short_text

SAMPLES = 64
CLOSE = 1e-3  # two runs on other hardware paths may round differently
_NOTES, _SAVED = "_tensorlens_samples", "_tensorlens_saved"
_WHAT = "what a checkpoint saves"


@dataclass(slots=True)
class _Saved:
    """What is known of a tensor that the second run saves, from the moment when it is saved."""

    kept: weakref.ref[torch.Tensor]  # what the checkpoint keeps of it, on the same memory
    tensor: int
    version: int
    sequence: int  # of the node that saves it
    values: torch.Tensor | None
    hash: torch.Tensor | None


def _forward_hook(recorder: Recorder, original: Any) -> Any:
    def __init__(self: Any, frame: Any) -> None:
        original(self, frame)
        if not recorder.paused:
            samples: list[Any] = []
            setattr(frame, _NOTES, samples)
            setattr(frame, _SAVED, {})
            self.pack_hook = _before(recorder, self.pack_hook, lambda tensor: samples.append(_sample(tensor)))
            self.unpack_hook = _checked(recorder, self.unpack_hook, weakref.ref(frame))

    return __init__


def _recomputation_hook(recorder: Recorder, original: Any) -> Any:
    def __init__(self: Any, frame_ref: Any, gid: Any) -> None:
        original(self, frame_ref, gid)
        told: list[int] = []

        def compare(tensor: torch.Tensor) -> None:
            frame = frame_ref()
            samples = getattr(frame, _NOTES, ())
            position = frame.recomp_counter[gid]
            if told or position >= len(samples) or _close(samples[position], now := _sample(tensor)):
                return
            told.append(position)
            values = _text(samples[position]), _text(now)
            recorder.rows.append((NOTICED, "recomputed", position, *values, _keeps_random(frame)))

        if not recorder.paused:
            self.pack_hook = _noted(recorder, _before(recorder, self.pack_hook, compare), frame_ref, gid)

    return __init__


def _noted(recorder: Recorder, pack: Any, frame_ref: Any, gid: Any) -> Any:
    """The hook that keeps a tensor for a later unpacking, which has no version check; its version is noted here."""

    @functools.wraps(pack)
    def packing(tensor: torch.Tensor) -> Any:
        position = frame_ref().recomp_counter[gid]
        try:
            return pack(tensor)
        finally:  # keeping the last one ends the second run with an exception
            with ErrorGuard(recorder, _WHAT), torch._C.DisableTorchFunction(), torch.no_grad(), MutedDispatch():
                _note(recorder, frame_ref(), gid, position, tensor)

    return packing


def _note(recorder: Recorder, frame: Any, gid: Any, position: int, tensor: torch.Tensor) -> None:
    holder = frame.weak_holders[position]() if position < len(frame.weak_holders) else None
    kept = None if holder is None else frame.recomputed[gid].get(holder.handles.get(gid))
    version = version_of(tensor)
    if kept is None or version == NONE or has_torch_dispatch(tensor):
        return
    number, sequence = recorder.tensor_ids.id_of(tensor), torch._C._autograd._get_sequence_nr() - 1
    saved = _Saved(weakref.ref(kept), number, version, sequence, _sample(tensor), _hash(tensor))
    getattr(frame, _SAVED, {})[id(kept)] = saved


def _checked(recorder: Recorder, unpack: Any, frame_ref: Any) -> Any:
    @functools.wraps(unpack)
    def unpacking(holder: Any) -> Any:
        result = unpack(holder)
        with ErrorGuard(recorder, _WHAT), torch._C.DisableTorchFunction(), torch.no_grad(), MutedDispatch():
            saved = getattr(frame_ref(), _SAVED, {}).pop(id(result), None)
            if saved is not None and saved.kept() is result and version_of(result) != saved.version:
                _tell_changed(recorder, saved, result)
        return result

    return unpacking


def _tell_changed(recorder: Recorder, saved: _Saved, now: torch.Tensor) -> None:
    """Write a row for a tensor that was changed in place since the second run saved it, if its values are others."""
    then, values = saved.values, _sample(now)
    before, after = "", short_text(now)
    differs = None if then is None or values is None else ~isclose(then, values, rtol=CLOSE, atol=0.0, equal_nan=True)
    if differs is not None and then is not None and values is not None and some(differs):
        before, after = _text(then[differs]), _text(values[differs])
    elif (differs is not None and numel(now) <= SAMPLES) or saved.hash is None or bool(saved.hash == _hash(now)):
        return
    versions = (saved.version, version_of(now))
    row = (None, "", saved.sequence, RECOMPUTED, saved.tensor, versions, before, after, None)
    recorder.rows.append((NOTICED, "stale", *row))


def _before(recorder: Recorder, pack: Any, look: Callable[[torch.Tensor], None]) -> Any:
    @functools.wraps(pack)
    def packing(tensor: torch.Tensor) -> Any:
        with ErrorGuard(recorder, _WHAT), torch._C.DisableTorchFunction(), torch.no_grad(), MutedDispatch():
            look(tensor)
        return pack(tensor)

    return packing


def _sample(tensor: torch.Tensor) -> torch.Tensor | None:
    """A copy of some of a tensor's values, evenly spread; None where reading them would cost."""
    if tensor.device.type != "cpu" or tensor.layout is not torch.strided or has_torch_dispatch(tensor):
        return None
    flat = reshape(detach(tensor) if is_contiguous(tensor) else detach(tensor)[..., :SAMPLES], (-1,))
    return clone(flat[:: max(1, math.ceil(numel(flat) / SAMPLES))])


def _hash(tensor: torch.Tensor) -> torch.Tensor | None:
    """Return a number that all values of a tensor go into: two tensors that differ may have the same, equal ones do."""
    if (
        tensor.layout is not torch.strided
        or numel(tensor) <= SAMPLES
        or is_fake(tensor)
        or not hasattr(torch, "hash_tensor")
    ):
        return None
    try:
        return torch.hash_tensor(detach(tensor))
    except (RuntimeError, NotImplementedError):  # a dtype that it does not take
        return None


def _close(one: torch.Tensor | None, other: torch.Tensor | None) -> bool:
    if one is None or other is None or one.shape != other.shape or one.dtype != other.dtype:
        return True  # not compared, or PyTorch's own to refuse
    return bool(every(isclose(one, other, rtol=CLOSE, atol=1e-6, equal_nan=True)))


def _text(sample: torch.Tensor | None) -> str:
    return "" if sample is None else short_text(sample[:SHOWN_VALUES])


def _keeps_random(frame: Any) -> bool:
    """Whether the checkpoint restores the state of the random generators for its second run."""
    run = frame.recompute_fn
    cells = dict(zip(run.__code__.co_freevars, run.__closure__ or (), strict=True))
    return bool(cells["preserve_rng_state"].cell_contents) if "preserve_rng_state" in cells else True


PATCHES: tuple[tuple[Any, str, Any], ...] = (
    (checkpoint._checkpoint_hook, "__init__", _forward_hook),
    (checkpoint._recomputation_hook, "__init__", _recomputation_hook),
)
