"""Follows the samples that loaders give. Installed in runs with `--training` only."""

from __future__ import annotations

from types import FrameType
from typing import Any

import torch
from torch.utils.data import dataloader

from tensorlens.journal.rows import optional
from tensorlens.tracer.isolation.guard import ErrorGuard, Function
from tensorlens.tracer.isolation.muted_dispatch import MutedDispatch
from tensorlens.tracer.isolation.patch import Patch, existing, observe
from tensorlens.tracer.recording.recorder import Recorder


@observe
def _next_index(recorder: Recorder, original: Function) -> Function:
    def next_index(frame: FrameType, self: Any) -> object:
        index = original(self)
        if recorder.statistics is not None:
            with ErrorGuard(recorder, "a loader", frame):
                recorder.statistics.samples.asked(self, index)
        return index

    return next_index


@observe
def _next_data(recorder: Recorder, original: Function) -> Function:
    def next_data(frame: FrameType, self: Any) -> object:
        if recorder.statistics is None:
            return original(self)
        with ErrorGuard(recorder, "a loader", frame):
            recorder.statistics.samples.begins(self)
        try:
            batch = original(self)
        except BaseException:
            recorder.statistics.samples.failed(self)
            raise
        guard = ErrorGuard(recorder, "a loader", frame)
        with guard, torch._C.DisableTorchFunction(), MutedDispatch(), recorder.quiet():
            recorder.statistics.samples.given(self, batch, optional(recorder.sites.site_of(frame)))
        return batch

    return next_data


_CLASSES = dataloader._SingleProcessDataLoaderIter, dataloader._MultiProcessingDataLoaderIter
PATCHES = existing(
    (
        Patch(dataloader._BaseDataLoaderIter, "_next_index", _next_index),
        *(Patch(each, "_next_data", _next_data) for each in _CLASSES),
    )
)
