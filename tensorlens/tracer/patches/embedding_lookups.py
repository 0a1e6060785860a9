"""Shows the ids that embeddings look up to the statistics of a run with `--training`. Installed in such runs only."""

from __future__ import annotations

from types import FrameType

import torch

from tensorlens.journal.rows import optional
from tensorlens.tracer.isolation.guard import ErrorGuard, Function
from tensorlens.tracer.isolation.patch import Patch, observe
from tensorlens.tracer.recording.recorder import Recorder

LOOKUP: Function = vars(torch.nn.Embedding)["forward"]


@observe
def _forward(recorder: Recorder, original: Function) -> Function:
    def forward(frame: FrameType, self: torch.nn.Embedding, *args: object, **kwargs: object) -> object:
        if recorder.statistics is not None and self.padding_idx is not None:
            with ErrorGuard(recorder, "ids", frame), torch._C.DisableTorchFunction(), recorder.quiet():
                given = args[0] if args else kwargs.get("input")
                recorder.statistics.ids.look(self, given, optional(recorder.sites.site_of(frame)))
        return original(self, *args, **kwargs)

    return forward


PATCHES: tuple[Patch[Recorder], ...] = (Patch(torch.nn.Embedding, "forward", _forward),)
