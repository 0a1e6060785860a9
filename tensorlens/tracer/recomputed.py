"""Whether a checkpointed function computes in backward what it computed in the forward pass.

A checkpoint compares shapes and types of what its two runs save; here a few values of each saved tensor are compared as
well, and the first that differ are written down.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import torch
from torch.utils import checkpoint

from tensorlens.journal import NOTICED
from tensorlens.tracer.net import Net
from tensorlens.tracer.originals import clone, detach, every, is_contiguous, isclose, numel, reshape
from tensorlens.tracer.recorder import Recorder
from tensorlens.tracer.texts import SHOWN_VALUES, short_text
from tensorlens.tracer.unheard import Unheard, hears

SAMPLES = 64
CLOSE = 1e-3  # two runs on other hardware paths may round differently
_NOTES = "_tensorlens_samples"


def _forward_hook(recorder: Recorder, original: Any) -> Any:
    def __init__(self: Any, frame: Any) -> None:
        original(self, frame)
        if not recorder.paused:
            samples: list[Any] = []
            setattr(frame, _NOTES, samples)
            self.pack_hook = _before(recorder, self.pack_hook, lambda tensor: samples.append(_sample(tensor)))

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
            self.pack_hook = _before(recorder, self.pack_hook, compare)

    return __init__


def _before(recorder: Recorder, pack: Any, look: Callable[[torch.Tensor], None]) -> Any:
    @functools.wraps(pack)
    def packing(tensor: torch.Tensor) -> Any:
        with Net(recorder, "what a checkpoint saves"), torch._C.DisableTorchFunction(), torch.no_grad(), Unheard():
            look(tensor)
        return pack(tensor)

    return packing


def _sample(tensor: torch.Tensor) -> torch.Tensor | None:
    """A copy of some of a tensor's values, evenly spread; None where reading them would cost."""
    if tensor.device.type != "cpu" or tensor.layout is not torch.strided or hears(tensor):
        return None
    flat = reshape(detach(tensor) if is_contiguous(tensor) else detach(tensor)[..., :SAMPLES], (-1,))
    return clone(flat[:: max(1, math.ceil(numel(flat) / SAMPLES))])


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
