"""Makes the interventions of a further run: each changes what the calls at one place of the program do.

- keep_copies: autograd saves copies of what these calls save, so that nothing can change it.
- retain_graph: these backward passes keep their graph.
- record_gradients: what these calls cut off from the graph stays in it.
- skip_write: these calls write into copies, so their arguments keep their values. What their lines write outside
  torch is undone.
- find_writes: the lines that run after these calls are followed, and those that write watched memory are noted.

A mode below the recorder's sees each call that the recorder has seen; patches see what no mode does.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import CodeType, FrameType
from typing import Any

import torch
import torch.utils.checkpoint
from torch.optim.optimizer import (
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
)
from torch.overrides import TorchFunctionMode

from tensorlens.journal.child_config import Intervention
from tensorlens.records.further_runs import Intervened
from tensorlens.tracer.isolation.guard import ErrorGuard, Function
from tensorlens.tracer.isolation.patch import Patch, observe, patched
from tensorlens.tracer.isolation.torch_features import without_checkpoint_options
from tensorlens.tracer.recording.ops import Args, Kwargs
from tensorlens.tracer.recording.recorder import Recorder
from tensorlens.tracer.reference.call_places import CallPlaces, Numbers
from tensorlens.tracer.reference.recorded_cuts import recorded
from tensorlens.tracer.reference.written_lines import WrittenLines

_PUSH = torch._C._autograd._push_saved_tensors_default_hooks
_POP = torch._C._autograd._pop_saved_tensors_default_hooks
_PLAIN = {torch.Tensor, torch.nn.Parameter}


@contextmanager
def intervening(recorder: Recorder, interventions: Sequence[Intervention]) -> Iterator[None]:
    """Intervenes while this lasts. To be entered after the recorder's own patches and before the recorder."""
    mode = Interventions(recorder, interventions)
    hooks = []
    if mode.places.has_kind("skip_write"):
        hooks.append(register_optimizer_step_pre_hook(lambda optimizer, *_: mode.step_begins(optimizer)))
        hooks.append(register_optimizer_step_post_hook(lambda *_: mode.step_ends()))
    try:
        with patched(PATCHES, mode), mode:
            yield
    finally:
        for hook in hooks:
            hook.remove()


class Interventions(TorchFunctionMode):
    """The mode that intervenes in calls of torch, and what the patches ask."""

    def __init__(self, recorder: Recorder, interventions: Sequence[Intervention]) -> None:
        super().__init__()
        self.recorder = recorder
        self.places = CallPlaces(recorder.sites, interventions)
        self._follows = self.places.has_kind("skip_write")
        self.lines = WrittenLines(recorder, self._is_skipped)
        self._made: set[int] = set()
        self._guard = ErrorGuard(recorder, "an intervention")
        self._stepped: list[tuple[torch.Tensor, torch.Tensor, int]] = []  # parameter, its values, its version

    @property
    def paused(self) -> bool:
        return self.recorder.paused

    def internal_error(self, what: str, error: Exception, frame: FrameType | None = None) -> None:
        self.recorder.internal_error(what, error, frame)

    def __torch_function__(self, func: Function, types: object, args: Args = (), kwargs: Kwargs | None = None) -> Any:
        kwargs = kwargs or {}
        if self.recorder.paused:
            return func(*args, **kwargs)
        frame = sys._getframe(1)
        numbers: Numbers = ()
        with self._guard:
            self.lines.end(frame)
            is_switch = func is torch._C._set_grad_enabled
            numbers = self.places.at_switch(frame) if is_switch else self.places.at(frame)
        if not (numbers or self._follows) or self.recorder.within:
            return func(*args, **kwargs)
        result = self._intervene(numbers, func, args, kwargs)
        self.follow(numbers, frame)
        return result

    def follow(self, numbers: Numbers, frame: FrameType) -> None:
        """Follows the lines that run after a call, if an intervention needs that."""
        if self._follows or self.made(numbers, "find_writes"):
            with self._guard:
                self.lines.begin(frame)

    def _is_skipped(self, code: CodeType, line: int) -> bool:
        """Returns whether what a line has written outside torch is to be undone."""
        return self._follows and self.made(self.places.on_line(code, line), "skip_write")

    def made(self, numbers: Numbers, kind: str) -> bool:
        """Returns whether some of the interventions are of a kind. Those are made now, and noted the first time."""
        wanted = self.places.of_kind(numbers, kind)
        for number in wanted:
            if number not in self._made:
                self._made.add(number)
                self.recorder.rows.write_fact(Intervened, number)
        return bool(wanted)

    def _intervene(self, numbers: Numbers, func: Function, args: Args, kwargs: Kwargs) -> Any:
        if self.places.of_kind(numbers, "record_gradients"):
            if func is torch._C._set_grad_enabled and args and not args[0]:
                self.made(numbers, "record_gradients")
                return None
            instead = recorded(func, args, kwargs)
            if instead is not None:
                self.made(numbers, "record_gradients")
                return instead()
        if self.made(numbers, "skip_write"):
            args, kwargs = _copied(args), _copied(kwargs)
        if self.made(numbers, "keep_copies"):
            with self.saving_copies():
                return func(*args, **kwargs)
        return func(*args, **kwargs)

    @contextmanager
    def saving_copies(self) -> Iterator[None]:
        """Makes autograd save copies inside."""
        pushed = False
        with self._guard:
            _PUSH(self._copy, lambda kept: kept)
            pushed = True
        try:
            yield
        finally:
            if pushed:
                _POP()

    def _copy(self, tensor: torch.Tensor) -> torch.Tensor:
        with self._guard:
            if type(tensor) in _PLAIN:
                with self.recorder.quiet(), torch._C.DisableTorchFunction():
                    return tensor.detach().clone()
        return tensor

    @contextmanager
    def on_stack(self) -> Iterator[None]:
        """Pushes the mode unless it is on the stack: PyTorch takes modes off while it runs what they have passed on."""
        depth = torch._C._len_torch_function_stack()
        if any(torch._C._get_function_stack_at(place) is self for place in range(depth)):
            yield
            return
        with self:
            yield

    def step_begins(self, optimizer: torch.optim.Optimizer) -> None:
        """Remembers the parameters of a step that is to be skipped."""
        with self._guard, self.recorder.quiet(), torch._C.DisableTorchFunction(), torch.no_grad():
            self._stepped.clear()
            if self.made(self.places.at(sys._getframe(1)), "skip_write"):
                held = [parameter for group in optimizer.param_groups for parameter in group["params"]]
                self._stepped += [(parameter, parameter.detach().clone(), parameter._version) for parameter in held]

    def step_ends(self) -> None:
        """Gives the parameters of a skipped step the values and versions that they had before."""
        with self._guard, self.recorder.quiet(), torch._C.DisableTorchFunction(), torch.no_grad():
            for parameter, values, version in self._stepped:
                parameter.data.copy_(values)
                torch._C._autograd._unsafe_set_version_counter((parameter,), (version,))
            self._stepped.clear()


def _copied(value: Any) -> Any:
    """Copies the tensors in the arguments of a call. The copies are in the graph."""
    if isinstance(value, torch.Tensor):
        return value.clone()
    if isinstance(value, list | tuple) and type(value) in (list, tuple):
        return type(value)(map(_copied, value))
    return {name: _copied(each) for name, each in value.items()} if type(value) is dict else value


@observe
def _engine(mode: Interventions, engine: Function) -> Function:
    """Keeps the graph of a pass, and intervenes in the calls that are made while it runs."""

    def _engine_run_backward(
        frame: FrameType, /, t_outputs: object, tensors: object, keep_graph: object, *args: object, **kwargs: object
    ) -> object:
        mode.lines.end(frame)
        numbers = mode.places.at(frame)
        keep_graph = mode.made(numbers, "retain_graph") or keep_graph
        with mode.on_stack():
            result: object = engine(t_outputs, tensors, keep_graph, *args, **kwargs)
        mode.follow(numbers, frame)
        return result

    return _engine_run_backward


@observe
def _inference_mode(mode: Interventions, original: Function) -> Function:
    """Enters inference mode as a context that changes nothing."""

    def __enter__(frame: FrameType, self: torch.inference_mode) -> object:
        numbers = mode.places.at_switch(frame)
        if torch.is_grad_enabled() and self.mode and mode.made(numbers, "record_gradients"):
            self.mode = False
        return original(self)

    return __enter__


@observe
def _checkpoint(mode: Interventions, original: Function) -> Function:
    """Runs a checkpoint in the way that records gradients whether its inputs require them or not.

    Instead of copies of its inputs, it keeps copies of all that its function saves: what it would recompute from them.
    """

    def checkpoint(frame: FrameType, /, function: Function, *args: object, **kwargs: object) -> object:
        numbers = mode.places.at(frame)
        if mode.made(numbers, "keep_copies"):
            with mode.saving_copies():
                return function(*args, **without_checkpoint_options(kwargs))
        if mode.made(numbers, "record_gradients"):
            kwargs["use_reentrant"] = False
        return original(function, *args, **kwargs)

    return checkpoint


@observe
def _apply(mode: Interventions, original: Function) -> Function:
    """Keeps copies of what a custom Function saves, also of the tensors that its `forward` leaves on `ctx`."""

    def apply(frame: FrameType, /, cls: type, *args: object, **kwargs: object) -> object:
        code = getattr(getattr(cls, "forward", None), "__code__", None)
        inside = () if code is None else mode.places.inside(code)
        if not mode.made((*mode.places.at(frame), *inside), "keep_copies"):
            return original(cls, *args, **kwargs)
        with mode.saving_copies():
            result: object = original(cls, *args, **kwargs)
        first = result[0] if isinstance(result, tuple) and result else result
        node = first.grad_fn if isinstance(first, torch.Tensor) else None
        with mode.recorder.quiet():
            for name, value in list(getattr(node, "__dict__", {}).items()):
                if type(value) in _PLAIN:
                    setattr(node, name, value.clone())
        return result

    return apply


@observe
def _thread(mode: Interventions, original: Function) -> Function:
    """Intervenes in a thread of the program, too."""

    def _bootstrap_inner(_: FrameType, thread: threading.Thread) -> None:
        with mode.on_stack():
            original(thread)

    return _bootstrap_inner


PATCHES = (
    Patch(torch.autograd, "_engine_run_backward", _engine),
    Patch(torch.autograd.graph, "_engine_run_backward", _engine),
    Patch(torch.inference_mode, "__enter__", _inference_mode),
    Patch(torch.utils.checkpoint, "checkpoint", _checkpoint),
    Patch(torch.autograd.Function, "apply", _apply),
    Patch(threading.Thread, "_bootstrap_inner", _thread),
)
