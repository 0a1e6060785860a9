"""Makes autograd keep copies of what it saves, in the second run of `--reference`, so that nothing can change it.

Saved-tensor hooks make the copies. With hooks PyTorch does not check versions, so the first run has none. Tensors that
hooks do not see are copied as well: the attributes of a `ctx`, and what the program's own pack hooks return. A
checkpoint runs its function once, and a tensor hook gets a gradient of its own.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import cast

import torch
import torch.utils.checkpoint
from torch._C import _autograd

from tensorlens.tracer.isolation.guard import ErrorGuard, Function, call_guarded
from tensorlens.tracer.isolation.patch import Patch, observe, patched
from tensorlens.tracer.isolation.torch_features import CHECKPOINT_CALL, checkpointed_arguments
from tensorlens.tracer.recording.recorder import Recorder
from tensorlens.tracer.reference.backward_check import BackwardCheck
from tensorlens.tracer.reference.central_differences import Application
from tensorlens.tracer.reference.gradient_samples import Comparison

_PUSH = _autograd._push_saved_tensors_default_hooks
_PLAIN = {torch.Tensor, torch.nn.Parameter}


@contextmanager
def saved_tensors_copied(recorder: Recorder) -> Iterator[None]:
    """Keeps copies while this lasts. To be entered after the recorder's own patches are installed."""
    copies = _Copies(recorder, BackwardCheck(recorder))
    with ErrorGuard(copies, "the saved-tensor hooks"):
        copies.begin()
    try:
        with patched(PATCHES, copies):
            yield
    finally:
        with ErrorGuard(copies, "the saved-tensor hooks"):
            copies.end()
        with copies.backward_check.guard:
            copies.backward_check.check()


class _Copies(threading.local):
    """The saved-tensor hooks of one thread: each thread has its own, and its own copy of this object's attributes."""

    paused = False  # the patches below run whether the recorder is paused or not

    def __init__(self, recorder: Recorder, backward_check: BackwardCheck) -> None:
        self.recorder, self.backward_check = recorder, backward_check
        self._comparison = Comparison(recorder.rows)
        self._guard = ErrorGuard(self, "what autograd saves")
        self._push = _PUSH
        self.active = False

    def internal_error(self, what: str, error: Exception, frame: FrameType | None = None) -> None:
        self._comparison.internal_error(what, error, frame)

    def begin(self) -> None:
        self._push(self._saved, lambda kept: kept)
        self.active = True

    def end(self) -> None:
        if self.active:
            _autograd._pop_saved_tensors_default_hooks()
            self.active = False

    def _saved(self, tensor: torch.Tensor) -> torch.Tensor:
        """Returns what autograd keeps instead of a tensor that it saves."""
        with self._guard:
            return self.copy(tensor)
        return tensor

    def copy(self, tensor: torch.Tensor) -> torch.Tensor:
        """Copies a tensor without its history. Autograd restores its place in the graph. Subclasses are not copied."""
        if type(tensor) not in _PLAIN:
            return tensor
        with self.recorder.quiet(), torch._C.DisableTorchFunction():
            return tensor.detach().clone()

    def packed_copy(self, packed: object) -> object:
        """Copies the tensors in what a pack hook of the program, or of PyTorch, returned."""
        with self._guard:
            return self._packed(packed)
        return packed

    def _packed(self, packed: object) -> object:
        if isinstance(packed, tuple | list) and type(packed) in (tuple, list):
            return type(packed)(self._packed(item) for item in packed)
        return self.copy(packed) if isinstance(packed, torch.Tensor) else packed


@observe
def _push(copies: _Copies, original: Function) -> Function:
    """Copies what other saved-tensor hooks return."""

    def push(_: FrameType, pack: Function, unpack: Function) -> None:
        original(lambda tensor: copies.packed_copy(pack(tensor)), unpack)

    return push


@observe
def _disable(copies: _Copies, original: Function) -> Function:
    """Removes the hooks where function transforms allow none."""

    def disable(_: FrameType, message: str, *args: object) -> None:
        copies.end()
        original(message, *args)

    return disable


@observe
def _enable(copies: _Copies, original: Function) -> Function:
    def enable(_: FrameType) -> None:
        original()
        if not copies.active:
            copies.begin()

    return enable


@observe
def _thread(copies: _Copies, original: Function) -> Function:
    """Keeps copies in a thread of the program, too."""

    def _bootstrap_inner(_: FrameType, thread: threading.Thread) -> None:
        copies.begin()
        try:
            original(thread)
        finally:
            copies.end()

    return _bootstrap_inner


@observe
def _apply(copies: _Copies, original: Function) -> Function:
    """Copies the tensors that the `forward` of a custom Function left on its `ctx`, when it has ended."""

    def apply(_: FrameType, /, cls: type, *args: object, **kwargs: object) -> object:
        recorder, check = copies.recorder, copies.backward_check
        application: Application | None = None
        if not kwargs and not recorder.paused:
            with check.guard, recorder.quiet(), torch._C.DisableTorchFunction():
                application = check.keep(cls, args)
        result: object = original(cls, *args, **kwargs)
        first = result[0] if isinstance(result, tuple) and result else result
        node = first.grad_fn if isinstance(first, torch.Tensor) else None
        with recorder.quiet():
            if node is not None and application is not None:
                node.register_prehook(_taking(copies, application))
            for name, value in list(getattr(node, "__dict__", {}).items()):
                if type(value) in _PLAIN:
                    setattr(node, name, value.clone())
        return result

    return apply


def _taking(copies: _Copies, application: Application) -> Callable[[tuple[object, ...]], None]:
    """Makes a hook of a custom Function's node, which runs before its `backward`."""

    def take(gradients: tuple[object, ...]) -> None:
        with copies.backward_check.guard:
            application.take(gradients)

    return take


@observe
def _register_hook(copies: _Copies, original: Function) -> Function:
    """Gives a tensor hook a gradient of its own: its writes change no other gradient."""

    def register_hook(_: FrameType, tensor: torch.Tensor, hook: Function) -> object:
        def run(gradient: torch.Tensor) -> object:
            return call_guarded(copies, "a hook", lambda hook: _with_own(hook, gradient), hook, (gradient,), {})

        return original(tensor, run)

    return register_hook


def _with_own(hook: Function, gradient: torch.Tensor) -> object:
    """Runs a hook with a copy of a gradient. Returns the copy if the hook changed it and returned nothing."""
    own = gradient.clone()
    version = own._version
    result = cast(object, hook(own))
    return own if result is None and own._version != version else result


@observe
def _checkpoint(_: _Copies, original: Function) -> Function:
    """Makes `checkpoint` run its function once."""

    def checkpoint(_: FrameType, /, function: Function, *args: object, **kwargs: object) -> object:
        args, kwargs = checkpointed_arguments(args, kwargs)
        return function(*args, **kwargs)

    return checkpoint


PATCHES = (
    Patch(_autograd, "_push_saved_tensors_default_hooks", _push),
    Patch(_autograd, "_saved_tensors_hooks_disable", _disable),
    Patch(_autograd, "_saved_tensors_hooks_enable", _enable),
    Patch(torch.autograd.Function, "apply", _apply),
    Patch(torch.Tensor, "register_hook", _register_hook),
    Patch(torch.utils.checkpoint, CHECKPOINT_CALL, _checkpoint),
    Patch(threading.Thread, "_bootstrap_inner", _thread),
)
