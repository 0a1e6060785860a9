"""Records reads of `.data` and of `.grad` as compact calls. `_fast_path.c` does the same for plain tensors."""

from __future__ import annotations

from types import FrameType
from typing import Any

import torch

from tensorlens.journal.rows import NONE, of_alias
from tensorlens.tracer.isolation.guard import ErrorGuard, Function
from tensorlens.tracer.recording import ops
from tensorlens.tracer.recording.dispatch_mode import FastPathMode
from tensorlens.tracer.recording.fast_path import SlowPathError
from tensorlens.tracer.recording.ops import Args, Kwargs
from tensorlens.tracer.recording.tensor_ids import PLAIN
from tensorlens.tracer.recording.tensor_states import version_of

_next_sequence = torch._C._autograd._get_sequence_nr
_grad_enabled = torch.is_grad_enabled


class PropertyReads(FastPathMode):
    """Records the reads of properties that a training step repeats for each parameter."""

    def finish_alias(
        self, func: Function, source: torch.Tensor, result: torch.Tensor, frame: FrameType | None, recorded: bool
    ) -> None:
        """Records a read of `.data`, unless the compiled path has, and watches the memory that both tensors have."""
        op = ops.name_of(func)
        if not recorded:
            with ErrorGuard(self, "an alias", frame):
                if not self._record_alias(func, source, result, frame):
                    self.note_alias(op, source, result, frame)
        try:
            self.saved_tensors.watch_alias(result, op, frame, source)
        except Exception as error:  # ours, never the user's
            self.internal_error("shared memory", error, frame)

    def set_watch_due(self, count: int) -> None:
        """Sets how many watched storages there are when they are swept next."""
        if self.tensor_ids.in_c is not None:
            self.tensor_ids.in_c.watch_due = count

    def _record_alias(
        self, func: Function, source: torch.Tensor, result: torch.Tensor, frame: FrameType | None
    ) -> bool:
        """Writes a compact call of a read of `.data`; returns False if such a call can have no template."""
        if frame is None or type(result) is not torch.Tensor or torch.is_inference_mode_enabled():
            return False
        first, graph = _next_sequence(), 0 if _grad_enabled() else 1
        key = (func, (), graph, 3, False, 0, result.shape, result.dtype, result.device, True, source.shape)
        try:
            versions = source._version, result._version
            template = self.templates.get(id(frame.f_code) + frame.f_lasti)
            if template is None or template[0] != key:
                template = self.find_template(frame, key, result)
        except (SlowPathError, RuntimeError):  # RuntimeError: an inference tensor has no version
            return False
        _, number, _, storage = self.tensor_ids.entry(source)
        alias = self.tensor_ids.add_alias(result, storage)[1]
        self.rows.write_call((template[1], number, versions[0], alias, of_alias(storage), versions[1], first))
        if alias >= self.tensor_ids.due:
            self.tensor_ids.sweep(alias)
        return True

    def read_gradient(self, func: Function, args: Args, kwargs: Kwargs, frame: FrameType | None) -> Any:
        """Makes and records a read of `.grad` by the user's own line."""
        source: Any = args[0]
        number = self.tensor_ids.find(source) if type(source) in PLAIN and not kwargs else None
        version = NONE if number is None else version_of(source)
        if number is None or version == NONE or frame is None or self.slow_path_reasons:
            return self.call(func, args, kwargs, frame)
        inputs, first = [number, version], _next_sequence()
        try:
            result = func(source)
        except BaseException as error:
            self.fail(error, func, inputs, frame)
            raise
        if not self._record_read((func, source, frame), result, inputs, first):
            self.finish_on_slow_path((func, args, kwargs, frame), result, [source], inputs, first)
        return result

    def _record_read(
        self, called: tuple[Function, torch.Tensor, FrameType], result: object, inputs: list[int], first: int
    ) -> bool:
        """Writes a compact call of a read of `.grad`; returns False if such a call can have no template."""
        func, source, frame = called
        if type(result) is not torch.Tensor or result.requires_grad or result.layout is not torch.strided:
            return False
        if torch.is_inference_mode_enabled() or (self.watched and self.is_watched([source], first, frame)):
            return False
        try:
            number, version = self.tensor_ids.id_of(result), result._version
            shapes = result.shape, result.dtype, result.device, True, source.shape
            key = (func, (), 0 if _grad_enabled() else 1, 3, False, 0, *shapes)
            template = self.find_template(frame, key, result)
        except (SlowPathError, RuntimeError):  # RuntimeError: an inference tensor has no version
            return False
        self.rows.write_call((template[1], *inputs, number, NONE, version, first))
        return True
