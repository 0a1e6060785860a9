"""Notes where the program seeds the random numbers of PyTorch. Installed in runs with `--training` only."""

from __future__ import annotations

from types import FrameType
from zlib import crc32

import torch

from tensorlens.records.training_values import SeedSet
from tensorlens.tracer.isolation.guard import ErrorGuard, Function
from tensorlens.tracer.isolation.muted_dispatch import MutedDispatch
from tensorlens.tracer.isolation.patch import Patch, observe
from tensorlens.tracer.isolation.readable import is_in_main_memory, is_measurable
from tensorlens.tracer.recording.recorder import Recorder

MOST = 2_000  # calls of a function that are noted
_LARGEST = 1 << 62


@observe
def _manual_seed(recorder: Recorder, original: Function) -> Function:
    left = iter(range(MOST))

    def manual_seed(frame: FrameType, seed: object, *args: object, **kwargs: object) -> object:
        result = original(seed, *args, **kwargs)
        with ErrorGuard(recorder, "a seed", frame):
            if type(seed) is int and abs(seed) < _LARGEST and next(left, None) is not None:
                recorder.rows.write_fact(SeedSet, recorder.sites.site_or_outside(frame), seed)
        return result

    return manual_seed


@observe
def _set_rng_state(recorder: Recorder, original: Function) -> Function:
    left = iter(range(MOST))

    def set_rng_state(frame: FrameType, *args: object, **kwargs: object) -> object:
        result = original(*args, **kwargs)
        with ErrorGuard(recorder, "a seed", frame), torch._C.DisableTorchFunction(), MutedDispatch():
            if next(left, None) is not None:
                state = _checksum(args[0] if args else kwargs.get("new_state"))
                recorder.rows.write_fact(SeedSet, recorder.sites.site_or_outside(frame), None, state)
        return result

    return set_rng_state


def _checksum(state: object) -> int | None:
    """Returns a checksum of a state of the generator. NumPy, which reads it faster, may be missing."""
    if not isinstance(state, torch.Tensor) or not is_measurable(state) or not is_in_main_memory(state):
        return None
    return crc32(bytes(state.tolist())) if state.dtype is torch.uint8 else None


PATCHES = (
    Patch(torch, "manual_seed", _manual_seed),
    Patch(torch.random, "manual_seed", _manual_seed),
    Patch(torch, "set_rng_state", _set_rng_state),
    Patch(torch.random, "set_rng_state", _set_rng_state),
)
