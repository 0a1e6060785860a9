"""Special modes as the user's code enters and leaves them: anomaly detection, saved-tensor hooks, autocast, levels of
forward mode, the transforms of `torch.func`; and the runs of checkpointed functions.

`PATCHES` goes with the table in `patches.py`.
"""

from __future__ import annotations

import functools
import sys
import types
import weakref
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import count
from typing import Any

import torch
import torch.utils.checkpoint

from tensorlens.journal.rows import CHANGE, NONE, REGION
from tensorlens.tracer.frames import bytecode
from tensorlens.tracer.frames.call_sites import NOWHERE
from tensorlens.tracer.frames.captured_state import CapturedState, Reading
from tensorlens.tracer.isolation.guard import ErrorGuard, caller
from tensorlens.tracer.patches.torch_functions import switch_site
from tensorlens.tracer.recording.recorder import Recorder

Wrap = Callable[[Recorder, Any], Any]
_MODE_FILES = ("anomaly_mode.py", "graph.py", "autocast_mode.py", "forward_ad.py")
_tokens = count()
_flags_set: dict[int, tuple[weakref.ref[Any], int]] = {}  # module -> site of the last `train()` or `eval()`


def _note(recorder: Recorder, frame: Any, kind: str, entering: bool) -> None:
    """A REGION row for a mode that the user's own code switched, not torch's inside."""
    site, _ = switch_site(recorder, frame, _MODE_FILES)
    if site != NONE:
        recorder.rows.append((REGION, NONE, site, kind, entering, NONE))


def _set_anomaly_enabled(recorder: Recorder, original: Any) -> Any:
    @functools.wraps(original)
    def set_anomaly_enabled(mode: bool, *args: Any, **kwargs: Any) -> None:
        original(mode, *args, **kwargs)
        if not recorder.paused:
            frame = caller()
            leaving = not mode or frame.f_code.co_name == "__exit__"
            _note(recorder, frame, "detect_anomaly", not leaving)

    return set_anomaly_enabled


def _switch(kind: str, entering: bool) -> Wrap:
    """A function that switches a mode on or off; a `kind` of "" is the class of the context manager. Entering may be
    refused."""

    def wrap(recorder: Recorder, original: Any) -> Any:
        home = original.__module__.removeprefix("torch.") if original.__module__ else ""

        @functools.wraps(original)
        def switch(*args: Any, **kwargs: Any) -> Any:
            if recorder.paused:
                return original(*args, **kwargs)
            frame = caller()
            name = kind or type(args[0]).__name__
            try:
                result = original(*args, **kwargs)
            except BaseException as error:
                recorder.fail(error, f"{home}.{name}", (), frame)
                raise
            _note(recorder, frame, name, entering)
            return result

        return switch

    return wrap


def _transform(fallback: str, entering: bool) -> Wrap:
    """A level of `torch.func` begins or ends: told at the user's line under the name of what was called there."""

    def wrap(recorder: Recorder, original: Any) -> Any:
        def nesting(*args: Any, **kwargs: Any) -> Any:
            result = original(*args, **kwargs)
            if not recorder.paused:
                site, kind = _transform_called(recorder, caller(), fallback)
                if site != NOWHERE:
                    recorder.rows.append((REGION, NONE, site, kind, entering, NONE))
            return result

        return nesting

    return wrap


def _transform_called(recorder: Recorder, frame: Any, fallback: str) -> tuple[int, str]:
    """The user's line, and the innermost public transform that runs: `vmap(grad(f))` opens a level of each."""
    name = ""
    while frame is not None and not recorder.sites.is_user(frame.f_code.co_filename):
        head = frame.f_code.co_qualname.partition(".")[0]
        if not name and head in torch.func.__all__:
            name = head
        frame = frame.f_back
    return recorder.sites.site_of(frame), f"func.{name or fallback}"


def _train(recorder: Recorder, original: Any) -> Any:
    @functools.wraps(original)
    def train(self: Any, mode: bool = True) -> Any:
        if not recorder.paused and getattr(self, "training", mode) != mode:
            _flags_set[id(self)] = (weakref.ref(self), recorder.sites.site_of(caller()))
        return original(self, mode)

    return train


def _reentrant(recorder: Recorder, original: Any) -> Any:
    """`CheckpointFunction.forward`, which runs the function; its `backward` runs it again."""

    @functools.wraps(original)
    def forward(ctx: Any, run_function: Any, *args: Any) -> Any:
        if recorder.paused:
            return original(ctx, run_function, *args)
        repeated = _Repeated(recorder, run_function, caller())
        with repeated.region():
            return original(ctx, repeated, *args)

    return forward


def _without_reentrant(recorder: Recorder, original: Any) -> Any:
    """The generator round the first run of the function, which it is given to run again."""

    @functools.wraps(original)
    def generator(fn: Any, *args: Any, **kwargs: Any) -> Any:
        if recorder.paused:
            return original(fn, *args, **kwargs)
        repeated = _Repeated(recorder, fn, caller())
        repeated.outside = CapturedState(fn, recorder.sites.is_user)
        return _within(repeated, original(repeated, *args, **kwargs))

    return generator


def _within(repeated: _Repeated, generator: Any) -> Iterator[Any]:
    entered = ExitStack()
    with ErrorGuard(repeated.recorder, "a checkpoint"):
        entered.enter_context(repeated.region())
    with entered:
        yield from generator


class _Repeated:
    """The function of a checkpoint: its first run is the forward pass, each later one a recomputation in backward."""

    def __init__(self, recorder: Recorder, function: Any, frame: Any) -> None:
        self.recorder = recorder
        self._function = function
        self._token = next(_tokens)
        self.outside: CapturedState | None = None
        self._site = recorder.sites.site_or_outside(frame)
        caller = recorder.sites.user_frame(frame)
        self._called = None if caller is None else (caller.f_code, caller.f_lasti)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.recorder.paused:
            return self._function(*args, **kwargs)
        entered = ExitStack()
        with ErrorGuard(self.recorder, "a checkpoint"):
            self._note_run(sys._getframe(1), entered)
        with entered:
            return self._function(*args, **kwargs)

    def _note_run(self, frame: Any, entered: ExitStack) -> None:
        outside = CapturedState(self._function, self.recorder.sites.is_user)
        if self.outside is None:
            self.outside = outside
            return
        for name, old, new in outside.differences(self.outside):
            site = self._changed_at(frame, old)
            self.recorder.rows.append((CHANGE, site, name, old.text, new.text, self._token))
        site = self.recorder.sites.site_or_outside(frame)
        entered.enter_context(self.noted("recomputation", site, NONE, self._token))

    @contextmanager
    def region(self) -> Iterator[None]:
        """The checkpoint's own call."""
        with self.noted("checkpoint", self._site, self._token, NONE):
            yield

    @contextmanager
    def noted(self, kind: str, site: int, token: int, checkpoint: int) -> Iterator[None]:
        self.recorder.rows.append((REGION, token, site, kind, True, checkpoint))
        try:
            yield
        finally:
            self.recorder.rows.append((REGION, NONE, site, kind, False, checkpoint))

    def _changed_at(self, frame: Any, reading: Reading) -> int:
        """The line that changed what the function reads: for a module's mode the call of `train()` or `eval()`, else
        the last instruction between the checkpoint and this backward pass that writes to the name."""
        module, site = _flags_set.get(reading.owner, (None, NOWHERE))
        if reading.attribute == "training" and module is not None and module() is not None:
            return site
        for code, after, before in self._places(frame):
            found = [o for o in bytecode.writes_to(code, reading.root, reading.attribute) if after < o < before]
            if found:
                return self.recorder.sites.at(code, found[-1], None)
        return NOWHERE

    def _places(self, frame: Any) -> Iterator[tuple[types.CodeType, int, int]]:
        """Where to look, the likeliest first: (code, after this offset, before this one)."""
        end = sys.maxsize
        running = []
        outer = self.recorder.sites.user_frame(frame)
        while outer is not None:
            running.append((outer.f_code, outer.f_lasti, outer.f_globals))
            outer = self.recorder.sites.user_frame(outer.f_back)
        for code, reached, _ in running:
            if self._called is not None and code is self._called[0]:
                yield code, self._called[1], reached if reached > self._called[1] else end
        assert self.outside is not None
        yield from ((code, -1, end) for code in self.outside.codes)
        if self._called is not None:
            yield self._called[0], self._called[1], end
        yield from ((code, -1, reached) for code, reached, _ in running)
        for _, _, names in running[-1:]:
            functions = [value for value in names.values() if isinstance(value, types.FunctionType)]
            user = self.recorder.sites.is_user
            yield from ((f.__code__, -1, end) for f in functions if user(f.__code__.co_filename))


_HOOKS = torch.autograd.graph.saved_tensors_hooks
_autograd: Any = torch._C._autograd
_levels: Any = torch._functorch.eager_transforms
_vmap: Any = torch._functorch.vmap

PATCHES: tuple[tuple[Any, str, Wrap], ...] = (
    (torch, "set_anomaly_enabled", _set_anomaly_enabled),
    (_HOOKS, "__enter__", _switch("", True)),
    (_HOOKS, "__exit__", _switch("", False)),
    (_autograd, "_saved_tensors_hooks_disable", _switch("disable_saved_tensors_hooks", True)),
    (_autograd, "_saved_tensors_hooks_enable", _switch("disable_saved_tensors_hooks", False)),
    (torch.amp.autocast_mode.autocast, "__enter__", _switch("autocast", True)),
    (torch.amp.autocast_mode.autocast, "__exit__", _switch("autocast", False)),
    (torch.autograd.forward_ad, "enter_dual_level", _switch("dual_level", True)),
    (torch.autograd.forward_ad, "exit_dual_level", _switch("dual_level", False)),
    (_levels, "_grad_increment_nesting", _transform("grad", True)),
    (_levels, "_grad_decrement_nesting", _transform("grad", False)),
    (_levels, "_jvp_increment_nesting", _transform("jvp", True)),
    (_levels, "_jvp_decrement_nesting", _transform("jvp", False)),
    (_vmap, "_vmap_increment_nesting", _transform("vmap", True)),
    (_vmap, "_vmap_decrement_nesting", _transform("vmap", False)),
    (torch.nn.Module, "train", _train),
    (torch.utils.checkpoint, "_checkpoint_without_reentrant_generator", _without_reentrant),
    (torch.utils.checkpoint.CheckpointFunction, "forward", _reentrant),
)
