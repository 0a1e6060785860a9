"""Takes the mode off the stack while `torch.compile`d code runs and while `torch.jit` traces."""

from __future__ import annotations

import functools
import sys
import weakref
from types import FrameType
from typing import cast

import torch

from tensorlens.journal.rows import optional
from tensorlens.records.observations import Compiled
from tensorlens.tracer.isolation.guard import ErrorGuard, Function
from tensorlens.tracer.isolation.patch import Patch, observe, observe_always
from tensorlens.tracer.recording import ops
from tensorlens.tracer.recording.recorder import Recorder

JIT = "traced by `torch.jit`: what runs inside is not seen"


@observe_always
def _jit_trace(recorder: Recorder, original: Function) -> Function:
    """Lets `torch.jit` trace without the mode: with it, the graph would not name the program's lines and values."""

    def trace(frame: FrameType, /, *args: object, **kwargs: object) -> object:
        if not recorder.paused:
            recorder.gap(JIT, frame)
        with recorder.aside():
            return original(*args, **kwargs)

    return trace


@observe
def _compile(recorder: Recorder, original: Function) -> Function:
    """Lets compiled code run as compiled. The recorder does not see it, and the report says so.

    A further run of `--reference=eager` calls the function itself instead.
    """
    wrapped: weakref.WeakSet[Function] = weakref.WeakSet()

    def compile_(frame: FrameType, /, model: Function | None = None, *args: object, **kwargs: object) -> object:
        compiled = original(model, *args, **kwargs)
        if model is None:  # a decorator with options: PyTorch's own result calls `torch.compile` again, seen here
            return compiled
        if compiled is not model and compiled not in wrapped:
            compiled = _CompiledFunction(recorder, model, compiled, frame).replacement()
            wrapped.add(compiled)
        return compiled

    return compile_


class _CompiledFunction:
    """A function or module that the program compiled, with the line that did so."""

    def __init__(self, recorder: Recorder, model: Function, compiled: Function, frame: FrameType) -> None:
        self._recorder, self._model, self._compiled = recorder, model, compiled
        self._site = recorder.sites.site_of(frame)
        self._number = recorder.compiled_functions
        recorder.compiled_functions += 1
        run = recorder.compared
        self._is_eager = run is not None and run.compiled is not None and self._number not in run.compiled
        self._is_noted = False
        if run is not None and run.eager_random:
            import torch._inductor.config

            torch._inductor.config.fallback_random = True

    def replacement(self) -> Function:
        """Makes the compiled function or module take the mode off the stack while it runs."""
        compiled, model, recorder = self._compiled, self._model, self._recorder
        run = compiled.forward if isinstance(compiled, torch.nn.Module) else compiled

        @functools.wraps(run)
        def run_compiled(*args: object, **kwargs: object) -> object:  # no patch: it wraps an object of the program
            if torch.compiler.is_compiling():
                return run(*args, **kwargs)
            if not recorder.paused:
                with ErrorGuard(recorder, "compiled code"):
                    self._note(sys._getframe(1))
            if self._is_eager:
                return model(*args, **kwargs)
            with recorder.aside():
                return run(*args, **kwargs)

        if isinstance(compiled, torch.nn.Module):
            object.__setattr__(compiled, "forward", run_compiled)
            return cast(Function, compiled)
        return run_compiled

    def _note(self, frame: FrameType) -> None:
        """Notes a call of the function, and that what runs inside is not seen."""
        recorder = self._recorder
        if not self._is_noted:
            self._is_noted = recorder.has_compiled = True
            known = recorder.callbacks.functions.find(_code_of(self._model))
            number, called = None if known is None else known.number, recorder.sites.site_of(frame)
            name = _name_of(self._model)
            recorder.rows.write_fact(Compiled, self._number, name, number, optional(self._site), optional(called))
        if not self._is_eager:
            recorder.gap(ops.COMPILED, frame)


def _code_of(model: Function) -> object:
    """Returns the function that a compiled module runs, or the function itself."""
    module = model if isinstance(model, torch.nn.Module) else getattr(model, "__self__", None)
    return type(module).forward if isinstance(module, torch.nn.Module) else model


def _name_of(model: Function) -> str:
    """Returns the name of a compiled function, or the class of a compiled module."""
    module = model if isinstance(model, torch.nn.Module) else getattr(model, "__self__", None)
    if isinstance(module, torch.nn.Module):
        return type(module).__name__
    return getattr(model, "__qualname__", type(model).__name__).rpartition("<locals>.")[2]


PATCHES = (
    Patch(torch, "compile", _compile),
    Patch(torch.jit, "trace", _jit_trace),
    Patch(torch.jit, "trace_module", _jit_trace),
    Patch(torch.jit, "_get_trace_graph", _jit_trace),
)
