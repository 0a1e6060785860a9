"""The hooks of modules: where they are registered, on what, and how the node runs that stands for a module's own."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch.nn.modules import module as modules
from torch.utils.hooks import BackwardHook

from tensorlens.journal.rows import NONE
from tensorlens.tracer.isolation.guard import caller
from tensorlens.tracer.recording.recorder import Recorder
from tensorlens.tracer.recording.user_callbacks import UserCallbacks, Watched

Wrap = Callable[[Recorder, Any], Any]


def _module_hook(kind: str) -> Wrap:
    def wrap(recorder: Recorder, original: Any) -> Any:
        @functools.wraps(original)
        def register(self: Any, hook: Any, *args: Any, **kwargs: Any) -> Any:
            if recorder.callbacks.asleep:
                return original(self, hook, *args, **kwargs)
            added = recorder.callbacks.add(kind, hook, caller(), recorder.callbacks.module(self))
            return _remembered(recorder.callbacks, original(self, hook, *args, **kwargs), added)

        return register

    return wrap


def _global_hook(kind: str) -> Wrap:
    def wrap(recorder: Recorder, original: Any) -> Any:
        @functools.wraps(original)
        def register(hook: Any, *args: Any, **kwargs: Any) -> Any:
            if recorder.callbacks.asleep:
                return original(hook, *args, **kwargs)
            added = recorder.callbacks.add(kind, hook, caller())
            return _remembered(recorder.callbacks, original(hook, *args, **kwargs), added)

        return register

    return wrap


def _remembered(callbacks: UserCallbacks, handle: Any, added: Any) -> Any:
    if added is not None:
        callbacks.by_handle[handle.id] = added[0]
    return handle


def _module_made(recorder: Recorder, original: Any) -> Any:
    """Where each module is made is kept beside it, and told once it has hooks."""

    @functools.wraps(original)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        if not recorder.callbacks.asleep:
            inits = {getattr(vars(kind).get("__init__"), "__code__", None) for kind in type(self).__mro__}
            frame: Any = caller()
            while frame is not None and frame.f_code in inits:  # those of its own classes
                frame = frame.f_back
            recorder.callbacks.made(self, frame)

    return __init__


def _backward_hook(recorder: Recorder, original: Any) -> Any:
    """The node that runs a module's full backward hooks: it is given lists of them, which nothing else reads."""

    def __init__(self: Any, module: Any, user_hooks: Any, user_pre_hooks: Any) -> None:
        if not recorder.callbacks.asleep:
            user_hooks = _watched_list(recorder, module, "_backward_hooks", user_hooks)
            user_pre_hooks = _watched_list(recorder, module, "_backward_pre_hooks", user_pre_hooks)
            _note_hooked(recorder, module, caller())
        original(self, module, user_hooks, user_pre_hooks)

    return __init__


def _note_hooked(recorder: Recorder, module: Any, frame: Any) -> None:
    """A module with backward hooks is called."""
    callbacks = recorder.callbacks
    forward = callbacks.functions.find(type(module).forward) or callbacks.functions.of_library(type(module))
    site = recorder.sites.site_of(frame)
    if site != NONE:
        number = callbacks.module(module)
        callbacks.register("hooked forward", forward.number, site, number)
        made = callbacks.made_at(module)
        if made != NONE:
            callbacks.register("module", callbacks.functions.of_library(type(module)).number, made, number)


def _watched_list(recorder: Recorder, module: Any, table: str, hooks: Any) -> list[Any]:
    callbacks = recorder.callbacks
    everywhere = getattr(modules, f"_global{table}")
    numbers = [
        (hook, callbacks.by_handle.get(key))
        for registered in (everywhere, vars(module)[table])
        for key, hook in registered.items()
    ]
    found = []
    for hook in hooks:
        number = next((n for known, n in numbers if known is hook), None)
        function = None if number is None else callbacks.functions.find(hook) or callbacks.functions.of_library(hook)
        found.append(
            hook if function is None or number is None else Watched(hook, callbacks, "module hook", (number, function))
        )
    return found


_MODULE_HOOKS = {
    "register_backward_hook": "old module backward hook",
    "register_full_backward_hook": "module backward hook",
    "register_full_backward_pre_hook": "module backward pre-hook",
    "register_forward_hook": "forward hook",
    "register_forward_pre_hook": "forward pre-hook",
}

PATCHES: tuple[tuple[Any, str, Wrap], ...] = (
    (BackwardHook, "__init__", _backward_hook),
    (torch.nn.Module, "__init__", _module_made),
    *((torch.nn.Module, name, _module_hook(kind)) for name, kind in _MODULE_HOOKS.items()),
    *(
        (modules, name.replace("register_", "register_module_"), _global_hook(kind))
        for name, kind in _MODULE_HOOKS.items()
    ),
)
