"""The second run of `--reference`: autograd keeps copies of all that it saves, so that nothing can change under it.

Saved-tensor hooks make the copies. They take the version check away, which is why the first run has none. What the
hooks don't see is copied as well: the attributes of a `ctx`, and what the program's own hooks hand back. A checkpoint
keeps what it would compute again, and a hook is given a gradient of its own.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
import torch.utils.checkpoint

from tensorlens.tracer.isolation.guard import ErrorGuard, guarded, guarded_patch
from tensorlens.tracer.recording.recorder import Recorder
from tensorlens.tracer.reference.backward_check import BackwardCheck
from tensorlens.tracer.reference.gradient_samples import Comparison

_autograd = torch._C._autograd
_PUSH = _autograd._push_saved_tensors_default_hooks
_PLAIN = {torch.Tensor, torch.nn.Parameter}


@contextmanager
def saved_tensors_copied(recorder: Recorder) -> Iterator[None]:
    """Keep copies while this lasts. To be entered after the recorder's own patches."""
    comparison = Comparison(recorder.rows)
    formulas = BackwardCheck(recorder)
    copies = _Copies(recorder, formulas)
    patches: tuple[tuple[Any, str, Callable[[Any], Any]], ...] = (
        (_autograd, "_push_saved_tensors_default_hooks", copies.push),
        (_autograd, "_saved_tensors_hooks_disable", copies.disable),
        (_autograd, "_saved_tensors_hooks_enable", copies.enable),
        (torch.autograd.Function, "apply", copies.apply),
        (torch.Tensor, "register_hook", copies.hooked),
        (torch.utils.checkpoint, "checkpoint", _kept),
        (threading.Thread, "_bootstrap_inner", copies.thread),
    )
    undo = [(owner, name, vars(owner)[name]) for owner, name, _ in patches]
    with ErrorGuard(comparison, "the saved-tensor hooks"):
        copies.begin()
    for owner, name, wrap in patches:
        setattr(owner, name, guarded_patch(comparison, _told_nothing(wrap), vars(owner)[name]))
    try:
        yield
    finally:
        for owner, name, original in undo:
            setattr(owner, name, original)
        with ErrorGuard(comparison, "the saved-tensor hooks"):
            copies.end()
        with formulas.net:
            formulas.check()


def _told_nothing(wrap: Callable[[Any], Any]) -> Callable[[Any, Any], Any]:
    """A wrapper as `guarded_patch` wants it, of one that needs no recorder."""
    return lambda _, original: wrap(original)


class _Copies(threading.local):
    """Hooks are a thread's own: so is whether they are in place."""

    def __init__(self, recorder: Recorder, formulas: BackwardCheck) -> None:
        self._recorder, self.formulas = recorder, formulas
        self._comparison = Comparison(recorder.rows)
        self._net = ErrorGuard(self._comparison, "what autograd saves")
        self._push = _PUSH
        self._active = False

    def begin(self) -> None:
        self._push(self.saved, lambda kept: kept)
        self._active = True

    def end(self) -> None:
        if self._active:
            _autograd._pop_saved_tensors_default_hooks()
            self._active = False

    def saved(self, tensor: Any) -> Any:
        """What autograd keeps in place of a tensor that it saves."""
        with self._net:
            return self.copy(tensor)
        return tensor

    def copy(self, tensor: Any) -> Any:
        """A copy without history; autograd gives it its place in the graph back. A subclass is left as it is."""
        if type(tensor) not in _PLAIN:
            return tensor
        with self._recorder.quiet(), torch._C.DisableTorchFunction():
            return tensor.detach().clone()

    def push(self, original: Any) -> Any:
        """The program's own hooks, or torch's: what they pack is copied."""

        def push(pack: Any, unpack: Any) -> None:
            original(lambda tensor: self._copied(pack(tensor)), unpack)

        return push

    def _copied(self, packed: Any) -> Any:
        with self._net:
            return self._packed(packed)
        return packed

    def _packed(self, packed: Any) -> Any:
        if type(packed) in (tuple, list):
            return type(packed)(self._packed(item) for item in packed)
        return self.copy(packed) if isinstance(packed, torch.Tensor) else packed

    def disable(self, original: Any) -> Any:
        """Function transforms allow no hooks: ours make room."""

        def disable(message: str, *args: Any) -> None:
            self.end()
            original(message, *args)

        return disable

    def enable(self, original: Any) -> Any:
        def enable() -> None:
            original()
            if not self._active:
                self.begin()

        return enable

    def thread(self, original: Any) -> Any:
        """A thread of the program's keeps copies too."""

        def _bootstrap_inner(thread: Any) -> None:
            self.begin()
            try:
                original(thread)
            finally:
                self.end()

        return _bootstrap_inner

    def apply(self, original: Any) -> Any:
        """`Function.apply`; the tensors that `forward` left on its `ctx` are copied when it has ended."""
        apply = original.__func__

        def applied(cls: Any, *args: Any, **kwargs: Any) -> Any:
            application = None
            if not kwargs and not self._recorder.paused:
                with self.formulas.net, self._recorder.quiet(), torch._C.DisableTorchFunction():
                    application = self.formulas.keep(cls, args)
            result = apply(cls, *args, **kwargs)
            first = result[0] if isinstance(result, tuple) and result else result
            node = first.grad_fn if isinstance(first, torch.Tensor) else None
            with self._recorder.quiet():
                if node is not None and application is not None:
                    node.register_prehook(self._taking(application))
                for name, value in list(getattr(node, "__dict__", {}).items()):
                    if type(value) in _PLAIN:
                        setattr(node, name, value.clone())
            return result

        return classmethod(applied)

    def _taking(self, application: Any) -> Callable[[Any], None]:
        """A hook of a custom Function's node, which runs before its `backward`."""

        def take(gradients: Any) -> None:
            with self.formulas.net:
                application.take(gradients)

        return take

    def hooked(self, original: Any) -> Any:
        """`register_hook` with a hook whose writes change no gradient but that of its own tensor."""

        def register_hook(tensor: Any, hook: Any) -> Any:
            def given(gradient: Any) -> Any:
                return guarded(self._comparison, "a hook", lambda hook: _own(hook, gradient), hook, (gradient,), {})

            return original(tensor, given)

        return register_hook


def _kept(original: Any) -> Any:
    """`checkpoint` that runs its function once."""
    own = {"use_reentrant", "context_fn", "determinism_check", "debug", "early_stop", "preserve_rng_state"}

    def checkpoint(function: Any, *args: Any, **kwargs: Any) -> Any:
        return function(*args, **{name: value for name, value in kwargs.items() if name not in own})

    return checkpoint


def _own(hook: Any, gradient: Any) -> Any:
    """What a hook makes of a copy of a gradient."""
    own = gradient.clone()
    version = own._version
    result = hook(own)
    return own if result is None and own._version != version else result
