"""The observers of a workload: none, an empty mode, TensorLens, and its alternatives."""

from __future__ import annotations

import importlib
import io
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from tensorlens.records.step_choice import StepChoice
from tensorlens.tracer.entry.new_recorder import new_recorder
from tensorlens.tracer.patches.table import installed
from tensorlens.tracer.patches.warnings_and_tracebacks import warnings_and_tracebacks_cleaned
from tensorlens.tracer.recording import compiled
from tensorlens.tracer.recording.journal_writer import JournalWriter

Observer = Callable[[], AbstractContextManager[Any]]


class Empty(TorchFunctionMode):
    """A mode that does nothing: the lower bound of the cost of any mode."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))


@contextmanager
def lens(steps: StepChoice | None = None) -> Iterator[None]:
    """Records as `tensorlens explain` does in the script's process, including the journal's thread."""
    with tempfile.TemporaryFile() as journal:
        recorder = new_recorder((), steps)
        sink = JournalWriter(recorder.rows, journal.fileno())
        try:
            with warnings_and_tracebacks_cleaned(recorder), installed(recorder), recorder:
                yield
                if recorder.sampling is not None:
                    recorder.sampling.end()
        finally:
            sink.close()
            recorder.close()


def lens_every(number: int) -> AbstractContextManager[None]:
    """Records every `number`-th training step, as `tensorlens explain --every` does."""
    return lens(StepChoice(every=number))


@contextmanager
def lens_in_python() -> Iterator[None]:
    """Records without the compiled fast path."""
    built, compiled.FastPath = compiled.FastPath, None
    try:
        with lens():
            yield
    finally:
        compiled.FastPath = built


@contextmanager
def anomaly() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with torch.autograd.detect_anomaly():
            yield


@contextmanager
def logging_mode() -> Iterator[None]:
    from torch.testing._internal.logging_tensor import LoggingTensorMode, capture_logs

    with LoggingTensorMode(), capture_logs():
        yield


@contextmanager
def profiler() -> Iterator[None]:
    activities = [torch.profiler.ProfilerActivity.CPU]
    with torch.profiler.profile(activities=activities, with_stack=True):
        yield


@contextmanager
def debug_mode() -> Iterator[None]:
    debug: Any = importlib.import_module("torch.utils._debug_mode")
    with debug.DebugMode():
        yield


def snooper() -> AbstractContextManager[Any]:
    """Runs TorchSnooper, which writes a line for every line of the workload; its output is dropped."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torchsnooper: Any = importlib.import_module("torchsnooper")
    context: AbstractContextManager[Any] = torchsnooper.snoop(io.StringIO(), depth=2)
    return context


OBSERVERS: dict[str, Observer] = {
    "plain": nullcontext,
    "empty mode": Empty,
    "lens": lens,
    "lens, in pure Python": lens_in_python,
    "detect_anomaly": anomaly,
    "DebugMode": debug_mode,
    "LoggingTensorMode": logging_mode,
    "profiler with stacks": profiler,
    "TorchSnooper": snooper,
}


def available() -> tuple[dict[str, Observer], dict[str, str]]:
    """Returns the observers that are installed, and the reason for each that is not."""
    missing: dict[str, str] = {}
    for name, observer in OBSERVERS.items():
        try:
            with observer():
                torch.ones(2) + 1
        except Exception as trouble:
            missing[name] = f"{type(trouble).__name__}: {trouble}"
    return {name: observer for name, observer in OBSERVERS.items() if name not in missing}, missing
