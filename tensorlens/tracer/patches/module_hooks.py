"""Watches the hooks of modules: where they are registered, on which module, and how their node runs them."""

from __future__ import annotations

from collections.abc import Sequence
from types import FrameType

import torch
from torch.nn.modules import module as modules
from torch.utils.hooks import BackwardHook, RemovableHandle

from tensorlens.journal.rows import NONE
from tensorlens.records.observations import ALL_MODULES, LateHook
from tensorlens.tracer.isolation.guard import Function
from tensorlens.tracer.isolation.patch import Observing, Patch, observe
from tensorlens.tracer.recording.ops import LATE
from tensorlens.tracer.recording.recorder import Recorder
from tensorlens.tracer.recording.user_callbacks import UserCallbacks, Watched


def _module_hook(kind: str) -> Observing[Recorder]:
    """Notes a hook that is registered on one module."""

    @observe
    def wrap(recorder: Recorder, original: Function) -> Function:
        def register(
            frame: FrameType, /, self: torch.nn.Module, hook: Function, *args: object, **kwargs: object
        ) -> object:
            added = recorder.callbacks.add(kind, hook, frame, recorder.callbacks.module(self))
            if added is not None and kind == "forward hook":
                _note_class(recorder, self, frame)
            hook = _late(recorder, kind, hook, frame)
            return _remember(recorder.callbacks, original(self, hook, *args, **kwargs), added)

        return register

    return wrap


def _note_class(recorder: Recorder, module: torch.nn.Module, frame: FrameType) -> None:
    """Notes the name of the class of a module that a forward hook is registered on."""
    callbacks, site = recorder.callbacks, recorder.sites.site_of(frame)
    if site != NONE:
        name = callbacks.functions.of_library(type(module)).number
        callbacks.register("module of a forward hook", name, site, callbacks.module(module))


def _global_hook(kind: str) -> Observing[Recorder]:
    """Notes a hook that is registered on all modules."""

    @observe
    def wrap(recorder: Recorder, original: Function) -> Function:
        def register(frame: FrameType, /, hook: Function, *args: object, **kwargs: object) -> object:
            added = recorder.callbacks.add(kind, hook, frame)
            hook = _late(recorder, f"{kind}{ALL_MODULES}", hook, frame)
            return _remember(recorder.callbacks, original(hook, *args, **kwargs), added)

        return register

    return wrap


def _late(recorder: Recorder, kind: str, hook: Function, frame: FrameType) -> Function:
    """Notes a hook that is registered after compiled code has run: PyTorch may never call it there.

    Returns what is registered: the hook, or one without effect in a further run that leaves it out.
    """
    if not recorder.has_compiled:
        return hook
    site = recorder.sites.site_of(frame)
    late = recorder.callbacks.late
    if site != NONE and site not in late:
        late[site] = len(late)
        function = recorder.callbacks.functions.find(hook) or recorder.callbacks.functions.of_library(hook)
        recorder.rows.write_fact(LateHook, late[site], kind, function.number, site)
    run = recorder.compared
    if run is None or run.compiled is None:
        recorder.gap(LATE, frame)
    return hook if run is None or late.get(site) not in run.unhooked else _no_hook


def _no_hook(*_: object, **__: object) -> None:
    """Does nothing, in the place of a hook that is left out."""


def _remember(callbacks: UserCallbacks, handle: RemovableHandle, added: tuple[int, object] | None) -> RemovableHandle:
    """Keeps the registration of a hook under the id of its handle, by which a module lists the hook."""
    if added is not None:
        callbacks.by_handle[handle.id] = added[0]
    return handle


@observe
def _module_init(recorder: Recorder, original: Function) -> Function:
    """Notes the line that makes a module. It is reported if the module has hooks later."""

    def __init__(caller: FrameType, /, self: torch.nn.Module, *args: object, **kwargs: object) -> None:
        original(self, *args, **kwargs)
        own_inits = {getattr(vars(base).get("__init__"), "__code__", None) for base in type(self).__mro__}
        frame: FrameType | None = caller
        while frame is not None and frame.f_code in own_inits:
            frame = frame.f_back
        recorder.callbacks.made(self, frame)

    return __init__


@observe
def _backward_hook(recorder: Recorder, original: Function) -> Function:
    """Watches the full backward hooks that the node of a module runs. Only the node reads the lists that it gets."""

    def __init__(
        frame: FrameType,
        self: BackwardHook,
        module: torch.nn.Module,
        user_hooks: Sequence[Function],
        user_pre_hooks: Sequence[Function],
    ) -> None:
        user_hooks = _watched_list(recorder, module, "_backward_hooks", user_hooks)
        user_pre_hooks = _watched_list(recorder, module, "_backward_pre_hooks", user_pre_hooks)
        _note_hooked(recorder, module, frame)
        original(self, module, user_hooks, user_pre_hooks)

    return __init__


def _note_hooked(recorder: Recorder, module: torch.nn.Module, frame: FrameType) -> None:
    """Notes that a module with backward hooks is called."""
    callbacks = recorder.callbacks
    forward = callbacks.functions.find(type(module).forward) or callbacks.functions.of_library(type(module))
    site = recorder.sites.site_of(frame)
    if site != NONE:
        number = callbacks.module(module)
        callbacks.register("hooked forward", forward.number, site, number)
        made = callbacks.made_at(module)
        if made != NONE:
            callbacks.register("module", callbacks.functions.of_library(type(module)).number, made, number)


def _watched_list(recorder: Recorder, module: torch.nn.Module, table: str, hooks: Sequence[Function]) -> list[Function]:
    """Replaces each hook that was registered while recording by one that is `Watched`."""
    callbacks = recorder.callbacks
    everywhere = getattr(modules, f"_global{table}")
    numbers = [
        (hook, callbacks.by_handle.get(key))
        for registered in (everywhere, vars(module)[table])
        for key, hook in registered.items()
    ]
    watched: list[Function] = []
    for hook in hooks:
        number = next((n for known, n in numbers if known is hook), None)
        function = None if number is None else callbacks.functions.find(hook) or callbacks.functions.of_library(hook)
        if function is not None and number is not None:
            hook = Watched(hook, callbacks, "module hook", (number, function))  # noqa: PLW2901
        watched.append(hook)
    return watched


_MODULE_HOOKS = {
    "register_backward_hook": "old module backward hook",
    "register_full_backward_hook": "module backward hook",
    "register_full_backward_pre_hook": "module backward pre-hook",
    "register_forward_hook": "forward hook",
    "register_forward_pre_hook": "forward pre-hook",
}

PATCHES = (
    Patch(BackwardHook, "__init__", _backward_hook),
    Patch(torch.nn.Module, "__init__", _module_init),
    *(Patch(torch.nn.Module, name, _module_hook(kind)) for name, kind in _MODULE_HOOKS.items()),
    *(
        Patch(modules, name.replace("register_", "register_module_"), _global_hook(kind))
        for name, kind in _MODULE_HOOKS.items()
    ),
)
