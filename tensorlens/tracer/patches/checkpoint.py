"""Notes the runs of checkpointed functions, and the lines that change what they read between two runs."""

from __future__ import annotations

import sys
import weakref
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import count
from types import CodeType, FrameType, FunctionType

import torch
import torch.utils.checkpoint

from tensorlens.journal.rows import ChangeRow, RegionRow, optional
from tensorlens.tracer.frames import bytecode
from tensorlens.tracer.frames.call_sites import NOWHERE
from tensorlens.tracer.frames.captured_state import CapturedState, Reading
from tensorlens.tracer.isolation.guard import ErrorGuard, Function
from tensorlens.tracer.isolation.patch import Patch, observe
from tensorlens.tracer.isolation.stack_room import ROOM
from tensorlens.tracer.isolation.torch_features import CHECKPOINT_RUN
from tensorlens.tracer.recording.recorder import Recorder

_checkpoint_numbers = count()
_mode_set: dict[int, tuple[weakref.ref[torch.nn.Module], int]] = {}  # id of a module -> site of `train()` or `eval()`


@observe
def _train(recorder: Recorder, original: Function) -> Function:
    """Remembers the last call that changed a module's `training` flag."""

    def train(frame: FrameType, self: torch.nn.Module, mode: bool = True) -> object:
        if getattr(self, "training", mode) != mode:
            _mode_set[id(self)] = (weakref.ref(self), recorder.sites.site_of(frame))
        return original(self, mode)

    return train


@observe
def _reentrant_forward(recorder: Recorder, original: Function) -> Function:
    """Notes `CheckpointFunction.forward`, which runs the function. Its `backward` runs the function again."""

    def forward(frame: FrameType, ctx: object, run_function: Function, *args: object) -> object:
        checkpointed = _CheckpointedFunction(recorder, run_function, frame)
        with checkpointed.region("checkpoint", checkpointed.site, checkpointed.number, None):
            return original(ctx, checkpointed, *args)

    return forward


@observe
def _non_reentrant_generator(recorder: Recorder, original: Function) -> Function:
    """Notes the generator around the first run of the function, which receives the function to run it again."""

    def generator(frame: FrameType, /, fn: Function, *args: object, **kwargs: object) -> object:
        checkpointed = _CheckpointedFunction(recorder, fn, frame)
        checkpointed.captured = CapturedState(fn, recorder.sites.is_user)
        return _inside_region(checkpointed, original(checkpointed, *args, **kwargs))

    return generator


def _inside_region(checkpointed: _CheckpointedFunction, generator: Iterator[object]) -> Iterator[object]:
    entered = ExitStack()
    with ErrorGuard(checkpointed.recorder, "a checkpoint"):
        entered.enter_context(checkpointed.region("checkpoint", checkpointed.site, checkpointed.number, None))
    with entered:
        yield from generator


class _CheckpointedFunction:
    """The function of a checkpoint: its first run is the forward pass, each later one a recomputation in backward."""

    def __init__(self, recorder: Recorder, function: Function, frame: FrameType) -> None:
        self.recorder = recorder
        self._function = function
        self.number = next(_checkpoint_numbers)
        self.captured: CapturedState | None = None  # before the first run
        self.site = recorder.sites.site_or_outside(frame)
        caller = recorder.sites.user_frame(frame)
        self._called_at = None if caller is None else (caller.f_code, caller.f_lasti)

    def __call__(self, *args: object, **kwargs: object) -> object:
        if self.recorder.paused:
            return self._function(*args, **kwargs)
        entered = ExitStack()
        with ErrorGuard(self.recorder, "a checkpoint"):
            self._note_run(sys._getframe(1), entered)
        with entered, ROOM:
            return self._function(*args, **kwargs)

    def _note_run(self, frame: FrameType, entered: ExitStack) -> None:
        captured = CapturedState(self._function, self.recorder.sites.is_user)
        if self.captured is None:
            self.captured = captured
            return
        for name, old, new in captured.differences(self.captured):
            site = self._changed_at(frame, old)
            self.recorder.rows.write(ChangeRow, optional(site), name, old.text, new.text, self.number)
        site = self.recorder.sites.site_or_outside(frame)
        entered.enter_context(self.region("recomputation", site, None, self.number))

    @contextmanager
    def region(self, kind: str, site: int, number: int | None, checkpoint: int | None) -> Iterator[None]:
        """Writes REGION rows when the checkpoint's own call, or a recomputation, begins and ends."""
        self.recorder.rows.write(RegionRow, number, site, kind, True, checkpoint)
        try:
            yield
        finally:
            self.recorder.rows.write(RegionRow, None, site, kind, False, checkpoint)

    def _changed_at(self, frame: FrameType, reading: Reading) -> int:
        """Finds the line that changed a value that the function reads.

        For a module's mode that is the call of `train()` or `eval()`. For any other value it is the last instruction
        between the checkpoint and this backward pass that writes to the name.
        """
        module, site = _mode_set.get(reading.owner, (None, NOWHERE))
        if reading.attribute == "training" and module is not None and module() is not None:
            return site
        for code, after, before in self._places(frame):
            writes = [o for o in bytecode.writes_to(code, reading.root, reading.attribute) if after < o < before]
            if writes:
                return self.recorder.sites.at(code, writes[-1], None)
        return NOWHERE

    def _places(self, frame: FrameType) -> Iterator[tuple[CodeType, int, int]]:
        """Returns where to look for the write, the likeliest place first: (code, after offset, before offset)."""
        end = sys.maxsize
        running = []
        outer = self.recorder.sites.user_frame(frame)
        while outer is not None:
            running.append((outer.f_code, outer.f_lasti, outer.f_globals))
            outer = self.recorder.sites.user_frame(outer.f_back)
        for code, reached, _ in running:
            if self._called_at is not None and code is self._called_at[0]:
                yield code, self._called_at[1], reached if reached > self._called_at[1] else end
        assert self.captured is not None
        yield from ((code, -1, end) for code in self.captured.codes)
        if self._called_at is not None:
            yield self._called_at[0], self._called_at[1], end
        yield from ((code, -1, reached) for code, reached, _ in running)
        for _, _, names in running[-1:]:
            functions = [value for value in names.values() if isinstance(value, FunctionType)]
            user = self.recorder.sites.is_user
            yield from ((f.__code__, -1, end) for f in functions if user(f.__code__.co_filename))


PATCHES = (
    Patch(torch.nn.Module, "train", _train),
    Patch(torch.utils.checkpoint, CHECKPOINT_RUN, _non_reentrant_generator),
    Patch(torch.utils.checkpoint.CheckpointFunction, "forward", _reentrant_forward),
)
