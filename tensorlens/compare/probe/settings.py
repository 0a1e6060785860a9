"""Saves, compares and restores the global settings of PyTorch and Python that an operand may change.

`torch.set_grad_enabled(False)` acts as soon as it is constructed: one such operand would spoil all later answers.
"""

from __future__ import annotations

import contextlib
import random
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils import _python_dispatch

from tensorlens.compare.probe.saved_tensor_hooks import top_hooks


@dataclass(frozen=True, slots=True)
class Setting:
    """A global setting: its name, and functions that read and write it."""

    name: str
    read: Callable[[], Any]
    write: Callable[[Any], object]


_entered: list[Any] = []  # entered to undo an operand's mode; to leave or delete one would bring that back


def _enter_inference_mode(enabled: bool) -> None:
    mode = torch.inference_mode(enabled)
    mode.__enter__()
    _entered.append(mode)


def _default_device() -> Any:
    context = getattr(torch._GLOBAL_DEVICE_CONTEXT, "device_context", None)
    return context and context.device


def _pop_until(size: Callable[[], int], pop: Callable[[], object]) -> Callable[[int], None]:
    def pop_all(wanted: int) -> None:
        while size() > wanted:
            pop()

    return pop_all


def _autocast(device: str) -> Setting:
    def write(state: tuple[bool, torch.dtype]) -> None:
        torch.set_autocast_enabled(device, state[0])
        torch.set_autocast_dtype(device, state[1])

    return Setting(
        f"autocast on {device}", lambda: (torch.is_autocast_enabled(device), torch.get_autocast_dtype(device)), write
    )


def _write_filters(state: list[Any]) -> None:
    warnings.filters[:] = state  # type: ignore[index]
    warnings._filters_mutated()  # type: ignore[attr-defined]


_deterministic: Any = torch.utils.deterministic


def _write_fill(state: bool) -> None:
    _deterministic.fill_uninitialized_memory = state


def _pop_saved_tensor_hooks(wanted: Any) -> None:
    while (top := top_hooks()) is not None and top != wanted:
        torch._C._autograd._pop_saved_tensors_default_hooks()


FILTERS = "warning filters"
SETTINGS = (
    Setting("inference mode", torch.is_inference_mode_enabled, _enter_inference_mode),
    Setting("grad mode", torch.is_grad_enabled, torch._C._set_grad_enabled),
    Setting("default dtype", torch.get_default_dtype, torch.set_default_dtype),
    Setting("default device", _default_device, torch.set_default_device),
    Setting(
        "deterministic algorithms",
        lambda: (torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled()),
        lambda state: torch.use_deterministic_algorithms(state[0], warn_only=state[1]),
    ),
    Setting("fill of uninitialized memory", lambda: _deterministic.fill_uninitialized_memory, _write_fill),
    Setting("number of threads", torch.get_num_threads, torch.set_num_threads),
    Setting(
        "anomaly mode",
        lambda: (torch.is_anomaly_enabled(), torch.is_anomaly_check_nan_enabled()),
        lambda state: torch.set_anomaly_enabled(*state),
    ),
    Setting("saved tensor hooks", top_hooks, _pop_saved_tensor_hooks),
    Setting(
        "function modes",
        torch._C._len_torch_function_stack,
        _pop_until(torch._C._len_torch_function_stack, torch.overrides._pop_mode),
    ),
    Setting(
        "dispatch modes",
        torch._C._len_torch_dispatch_stack,
        _pop_until(torch._C._len_torch_dispatch_stack, _python_dispatch._pop_mode),
    ),
    _autocast("cpu"),
    _autocast("cuda"),
    Setting("autocast cache", torch.is_autocast_cache_enabled, torch.set_autocast_cache_enabled),
    Setting("threads of backward", torch._C._is_multithreading_enabled, torch._C._set_multithreading_enabled),
    Setting("precision of float32 products", torch.get_float32_matmul_precision, torch.set_float32_matmul_precision),
    Setting("repeated warnings of PyTorch", torch.is_warn_always_enabled, torch.set_warn_always),
    Setting(FILTERS, lambda: list(warnings.filters), _write_filters),
)


def _numpy_random() -> Any:
    numpy = sys.modules.get("numpy")
    return None if numpy is None else numpy.random


def snapshot() -> tuple[Any, ...]:
    """Returns the value of every setting."""
    return tuple(setting.read() for setting in SETTINGS)


def changed(since: tuple[Any, ...]) -> list[str]:
    """Returns the names of the settings that differ from `since`."""
    return [setting.name for setting, before in zip(SETTINGS, since, strict=True) if setting.read() != before]


def restore(state: tuple[Any, ...]) -> None:
    """Restores every setting that differs from `state`."""
    for setting, before in zip(SETTINGS, state, strict=True):
        if setting.read() != before:
            setting.write(before)


SEED = 3  # with this seed, a dropout of a few elements keeps some and drops some


def seed(number: int = SEED) -> None:
    """Seeds the generators of PyTorch, NumPy and Python."""
    torch.default_generator.manual_seed(number)  # `torch.manual_seed` takes longer than most calls
    if torch.cuda.is_initialized():
        torch.cuda.manual_seed_all(number)
    random.seed(number)
    if numpy_random := _numpy_random():
        numpy_random.seed(number)


def fill_uninitialized() -> None:
    """Makes PyTorch fill uninitialized memory with NaN, or with the largest integer."""
    torch.use_deterministic_algorithms(True, warn_only=True)
    _deterministic.fill_uninitialized_memory = True


@contextlib.contextmanager
def kept() -> Iterator[None]:
    """Restores the settings after the block."""
    before = snapshot()
    try:
        yield
    finally:
        restore(before)


@contextlib.contextmanager
def restored() -> Iterator[tuple[Any, ...]]:
    """Restores the settings and random generators after the block. Yields the settings before it."""
    settings, generator, python = snapshot(), torch.get_rng_state(), random.getstate()
    numpy_random = _numpy_random()
    numbers = numpy_random and numpy_random.get_state()
    try:
        yield settings
    finally:
        restore(settings)
        torch.set_rng_state(generator)
        random.setstate(python)
        if numbers:
            numpy_random.set_state(numbers)
