"""Records the parameters that an optimizer is made with, or gets later."""

from __future__ import annotations

from types import FrameType

import torch

from tensorlens.journal.rows import ValuesRow
from tensorlens.tracer.isolation.guard import Function
from tensorlens.tracer.isolation.patch import Patch, observe
from tensorlens.tracer.patches.record_call import PatchedCall, record_use
from tensorlens.tracer.patches.unregistered_parameters import SPENT, is_spent, owner_of, unregistered
from tensorlens.tracer.recording.recorder import Recorder, collect_tensors


@observe
def _init(recorder: Recorder, original: Function) -> Function:
    """Records the construction of an optimizer as a call on its parameters."""

    def __init__(
        frame: FrameType, /, self: torch.optim.Optimizer, params: object, *args: object, **kwargs: object
    ) -> None:
        name = f"optim.{type(self).__name__}"
        module, spent = owner_of(params), is_spent(params)
        try:
            original(self, params, *args, **kwargs)
        except BaseException as error:
            tensors: list[torch.Tensor] = []
            with torch._C.DisableTorchFunction():
                plain = params if module is None else [tensor for _, tensor, _ in unregistered(module)]
                collect_tensors(plain, tensors)
                inputs = recorder.accesses(tensors)
            recorder.fail(error, name, inputs, frame)
            if spent:
                recorder.rows.write(ValuesRow, recorder.failures - 1, (("", SPENT, None, None),))
            raise
        if recorder.sampling is not None:
            recorder.sampling.optimizer_made()
        if recorder.samples is not None:
            recorder.samples.made(self)
        if recorder.statistics is not None:
            recorder.statistics.made(self, frame)
        parameters: list[torch.Tensor] = []
        for group in self.param_groups:
            collect_tensors(group["params"], parameters)
        record_use(recorder, PatchedCall(original, name, frame), parameters)
        recorder.training.reached.look(frame)

    return __init__


@observe
def _add_param_group(recorder: Recorder, original: Function) -> Function:
    """Records parameters that an optimizer gets after it was made."""

    def add_param_group(frame: FrameType, self: torch.optim.Optimizer, param_group: object) -> None:
        original(self, param_group)
        if frame.f_code.co_qualname != "Optimizer.__init__":
            name = f"optim.{type(self).__name__}.add_param_group"
            record_use(recorder, PatchedCall(original, name, frame), list(self.param_groups[-1]["params"]))
            if recorder.statistics is not None:
                recorder.statistics.made(self, frame)

    return add_param_group


PATCHES = (
    Patch(torch.optim.Optimizer, "__init__", _init),
    Patch(torch.optim.Optimizer, "add_param_group", _add_param_group),
)
