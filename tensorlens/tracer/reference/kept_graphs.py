"""Makes every backward pass keep its graph, so that a later pass can go through it again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

import torch.autograd

from tensorlens.tracer.isolation.guard import Function
from tensorlens.tracer.isolation.patch import Patch, observe, patched
from tensorlens.tracer.recording.recorder import Recorder


@contextmanager
def graphs_kept(recorder: Recorder) -> Iterator[None]:
    """Keeps the graph of each pass while this lasts. To be entered after the recorder's own patches are installed."""
    with patched(PATCHES, recorder):
        yield


@observe
def _engine(_: Recorder, engine: Function) -> Function:
    def _engine_run_backward(
        frame: FrameType, /, t_outputs: object, tensors: object, keep_graph: object, *args: object, **kwargs: object
    ) -> object:
        return engine(t_outputs, tensors, True, *args, **kwargs)

    return _engine_run_backward


PATCHES = (
    Patch(torch.autograd, "_engine_run_backward", _engine),
    Patch(torch.autograd.graph, "_engine_run_backward", _engine),
)
