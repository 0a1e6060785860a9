"""Declares the parts that are built on the recorder, with the methods that the recorder and the patches call.

Those parts are in rooms above this one, so the recorder does not import them: its constructor receives a function that
makes them (`tracer/entry/new_recorder.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import FrameType
from typing import Any, Protocol

import torch

from tensorlens.tracer.recording.reached_names import ReachedNames

Called = tuple[Any, str, Any, bool, bool, Any]
"""A call that has ended: the function, a name to record it under ("" for its own), the frame that called it, whether
`out=` was given, whether a tensor may be of a subclass, and its arguments."""
Hook = Callable[[Any], object]


class SavedTensors(Protocol):
    """Notices saved tensors that change before backward uses them: `tracer/saved_tensors/service.py`."""

    def is_watched(self, tensors: Sequence[torch.Tensor], first: int, frame: FrameType) -> bool: ...
    def after_call(
        self, called: Called, tensors: Sequence[torch.Tensor], inputs: Sequence[int], before: int
    ) -> None: ...
    def watch(
        self, tensor: torch.Tensor, op: str, frame: FrameType | None, external: bool, source: object = None
    ) -> None: ...
    def compare_all(self, frame: FrameType) -> None: ...
    def note_storage_write(self, frame: FrameType) -> None: ...
    def note_moved_tensor(
        self, before: torch.Tensor, tensor: torch.Tensor, op: str, frame: FrameType | None
    ) -> None: ...
    def note_kernel_write(self, tensor: torch.Tensor, op: str, frame: FrameType | None) -> None: ...
    def note_statistics_used(self, result: torch.Tensor, *running: torch.Tensor) -> None: ...
    def note_statistics_updated(self, op: str, frame: FrameType | None, *running: torch.Tensor) -> None: ...
    def note_function_applied(self, result: object, args: tuple[object, ...]) -> None: ...
    def with_version_check(self, pack: Hook, unpack: Hook) -> tuple[Hook, Hook]: ...
    def note_stale(self, roots: list[torch.Tensor], frame: FrameType) -> None: ...


class Rounds(Protocol):
    """Counts the steps or passes of a training loop: `tracer/saved_tensors/retained_graphs.py`."""

    def round_ends(self, by_step: bool) -> None: ...


class OptimizerState(Protocol):
    """Knows what optimizers and modules hold: `tracer/patches/optimizer_state.py`."""

    @property
    def held(self) -> Rounds: ...
    @property
    def reached(self) -> ReachedNames: ...
    def name_backward(self, tensor: torch.Tensor, frame: Any) -> None: ...
    def call_backward(self, tensor: torch.Tensor) -> None: ...


class OptimizerSteps(Protocol):
    """Follows the optimizer steps that are running: `tracer/patches/optimizer_step.py`."""

    def begin(self, optimizer: Any, found: list[Any], frame: Any) -> None: ...
    def end(self, error: BaseException | None) -> None: ...
    def dropped(self, held: list[torch.Tensor], frame: Any) -> None: ...


class GradientSamples(Protocol):
    """Samples the values that `--reference` compares: `tracer/reference/gradient_samples.py`."""

    def start(self, roots: list[torch.Tensor]) -> Callable[[Any, list[torch.Tensor], bool], None]: ...
    def made(self, optimizer: Any) -> None: ...
    def step(self, optimizer: Any) -> None: ...


@dataclass(frozen=True, slots=True)
class Services:
    """The parts of one recorder."""

    saved_tensors: SavedTensors
    optimizer_state: OptimizerState
    optimizer_steps: OptimizerSteps
