"""Records what `fully_shard` does with a module: how its parameters are divided, and the hooks by which it gathers them
for backward.

PyTorch imports `fully_shard` only if the program does. So its classes are patched when it registers its first hook.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack
from types import FrameType
from typing import Any
from weakref import WeakKeyDictionary

import torch

from tensorlens.journal.rows import optional
from tensorlens.records.distributed import Sharded, ShardedHookRan, ShardedOutput
from tensorlens.tracer.isolation.guard import ErrorGuard, Function
from tensorlens.tracer.isolation.muted_dispatch import MutedDispatch
from tensorlens.tracer.isolation.patch import Observing, Patch, existing, observe, patched
from tensorlens.tracer.recording.recorder import Recorder

_MODULE = "torch.distributed.fsdp._fully_shard._fsdp_state"
_CLASS = "FSDPState"
_MOST = 2_000  # outputs, and runs of hooks, that are noted


class ShardedModules:
    """The modules of one rank that `fully_shard` has divided."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._made: WeakKeyDictionary[object, int | None] = WeakKeyDictionary()  # state -> site of `fully_shard`
        self._numbers: WeakKeyDictionary[object, int] = WeakKeyDictionary()  # of states
        self._groups = self._outputs = self._hooks = 0

    def sharding(self, state: object, frame: FrameType) -> None:
        """Notes the line that calls `fully_shard`."""
        self._made.setdefault(state, optional(self._recorder.sites.site_of(frame)))

    def first_forward(self, root: Any, frame: FrameType) -> None:
        """Notes all groups of parameters below a root module, which is called for the first time."""
        site = optional(self._recorder.sites.site_of(frame))
        with torch._C.DisableTorchFunction(), MutedDispatch():
            for state in root._state_ctx.all_states:
                for group in state._fsdp_param_groups:
                    self._note(group, (self._made.get(state), site))

    def _note(self, group: Any, sites: tuple[int | None, int | None]) -> None:
        held = group.fsdp_params
        tensors = [each.sharded_param for each in held]
        self._recorder.meet(tensors)
        computes_in = {str(each.param_dtype).removeprefix("torch.") for each in held if each.param_dtype is not None}
        self._recorder.rows.write_fact(
            Sharded,
            self._groups,
            sites,
            tuple(str(each._param_fqn) for each in held),
            tuple(map(self._recorder.tensor_ids.id_of, tensors)),
            tuple("trained" if each.requires_grad else "frozen" for each in tensors),
            tuple(f"{list(each._orig_size)} {str(each.orig_dtype).removeprefix('torch.')}" for each in held),
            tuple(str(list(each.sharded_size)) for each in held),
            tuple(group.mesh_info.mesh.shape),
            ", ".join(sorted(computes_in)),
        )
        self._groups += 1

    def returned(self, state: object, output: object, frame: FrameType) -> None:
        """Notes the views among the outputs of a forward pass: a write to a view takes its hook away."""
        for tensor in _tensors(output):
            if tensor.requires_grad and tensor._base is not None and self._outputs < _MOST:
                self._outputs += 1
                self._recorder.meet([tensor])
                site = optional(self._recorder.sites.site_of(frame))
                known = self._recorder.tensor_ids.id_of(tensor)
                self._recorder.rows.write_fact(ShardedOutput, self._number(state), site, known)

    def hook_runs(self, state: object) -> None:
        if self._numbers and self._hooks < _MOST:
            self._hooks += 1
            self._recorder.rows.write_fact(ShardedHookRan, self._number(state))

    def _number(self, state: object) -> int:
        return self._numbers.setdefault(state, len(self._numbers))


def _tensors(value: object) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _tensors(each)
    elif isinstance(value, dict):
        yield from _tensors([*value.values()])


def _registers(modules: ShardedModules, undo: ExitStack) -> Observing[Recorder]:
    """Notices the hook that `fully_shard` registers on a module, before it divides the parameters."""
    installed: set[type] = set()

    @observe
    def wrap(recorder: Recorder, original: Function) -> Function:
        def register_forward_pre_hook(
            frame: FrameType, /, self: torch.nn.Module, hook: object, *args: object, **kwargs: object
        ) -> object:
            with ErrorGuard(recorder, "a sharded module", frame):
                state = getattr(hook, "__self__", None)
                known = getattr(sys.modules.get(_MODULE), _CLASS, None)
                if known is not None and isinstance(state, known):
                    if known not in installed:
                        installed.add(known)
                        undo.enter_context(patched(_patches_of(known, modules), recorder))
                    modules.sharding(state, frame)
            return original(self, hook, *args, **kwargs)

        return register_forward_pre_hook

    return wrap


def _patches_of(state_class: type, modules: ShardedModules) -> tuple[Patch[Recorder], ...]:
    wraps = {"_lazy_init": _lazy_init, "_register_pre_backward_hook": _output, "_pre_backward": _pre_backward}
    return existing(tuple(Patch(state_class, name, wrap(modules)) for name, wrap in wraps.items()))


def _lazy_init(modules: ShardedModules) -> Observing[Recorder]:
    @observe
    def wrap(recorder: Recorder, original: Function) -> Function:
        def _lazy_init(frame: FrameType, /, self: Any) -> None:
            is_first = self._is_root is None
            original(self)
            with ErrorGuard(recorder, "a sharded module", frame):
                if is_first:
                    modules.first_forward(self, frame)

        return _lazy_init

    return wrap


def _output(modules: ShardedModules) -> Observing[Recorder]:
    @observe
    def wrap(recorder: Recorder, original: Function) -> Function:
        def _register_pre_backward_hook(frame: FrameType, /, self: object, output: object) -> object:
            result: object = original(self, output)
            with ErrorGuard(recorder, "a sharded module", frame):
                if torch.is_grad_enabled():
                    modules.returned(self, output, frame)
            return result

        return _register_pre_backward_hook

    return wrap


def _pre_backward(modules: ShardedModules) -> Observing[Recorder]:
    @observe
    def wrap(recorder: Recorder, original: Function) -> Function:
        def _pre_backward(frame: FrameType, /, self: object, *args: object) -> object:
            with ErrorGuard(recorder, "a sharded module", frame):
                modules.hook_runs(self)
            return original(self, *args)

        return _pre_backward

    return wrap


def patches(recorder: Recorder, undo: ExitStack) -> tuple[Patch[Recorder], ...]:
    """Returns the patch for a rank of a distributed run. It installs the others when they are needed; `undo` undoes
    them."""
    registers = _registers(ShardedModules(recorder), undo)
    return (Patch(torch.nn.Module, "register_forward_pre_hook", registers),)
