"""Runs one module of PyTorch's `module_db` on its sample inputs: forward, backward, double backward."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
from torch.testing._internal.common_modules import ModuleInfo

import tensorlens
from unchanged.observing import (
    Lens,
    Observed,
    Outcome,
    added,
    attempt,
    compared,
    derive,
    facts,
    sharing,
    tensors_in,
    watched,
)

DTYPES = (torch.float32, torch.float64)


def _inputs(info: ModuleInfo, dtype: torch.dtype, training: bool) -> list[Any]:
    """Returns the sample inputs, the same at every call."""
    torch.manual_seed(3)
    return list(info.module_inputs_func(info, "cpu", dtype, True, training))


def observe(info: ModuleInfo, dtype: torch.dtype, training: bool, sample: Any, lens: Lens) -> Observed:
    """Makes the module and runs it inside `lens()`; reads everything outside."""
    seen: Observed = {}
    torch.manual_seed(5)
    given, called = sample.constructor_input, sample.forward_input
    keep: dict[str, Any] = {}

    def run() -> None:
        module = keep["module"] = info.module_cls(*given.args, **given.kwargs).to(dtype).train(training)
        if called is not None:
            keep["result"] = module(*called.args, **called.kwargs)

    def back(twice: bool) -> list[torch.Tensor]:
        called_with = [] if called is None else list(tensors_in([called.args, called.kwargs]))
        leaves = [leaf for leaf in [*keep["module"].parameters(), *called_with] if leaf.is_leaf and leaf.requires_grad]
        return derive(list(tensors_in(keep["result"])), leaves, twice) if leaves else []

    with watched(seen), lens():
        attempt(run, seen, "forward")
        if "result" in keep:
            keep["first"] = attempt(lambda: back(True), seen, "backward of backward")
            attempt(lambda: back(False), seen, "backward")
        keep["state"] = {} if "module" not in keep else keep["module"].state_dict()
    inputs = [] if called is None else list(tensors_in([called.args, called.kwargs]))
    parameters = list(keep["module"].parameters()) if "module" in keep else []
    gradients = [leaf.grad for leaf in inputs + parameters if leaf.is_leaf and leaf.grad is not None]
    state = list(tensors_in(list(keep["state"].values())))
    everything = inputs + parameters + gradients + list(tensors_in([keep.get("result"), keep.get("first")])) + state
    seen["names"] = list(keep["state"])
    seen["text"] = repr(keep.get("module"))
    seen["sharing"] = sharing(everything)
    with torch.no_grad():
        seen["tensors"] = [facts(tensor) for tensor in everything]
    return seen


def compare(info: ModuleInfo, limit: int | None, lens: Lens = tensorlens.trace) -> Outcome:
    """Runs a module in every dtype and mode that it has."""

    def run(dtype: torch.dtype, training: bool) -> Outcome:
        name = f"{info.formatted_name} {dtype} {training=}"
        return compared(
            lambda: _inputs(info, dtype, training)[:limit], partial(observe, info, dtype, training), name, lens
        )

    modes = (True, False) if info.train_and_eval_differ else (True,)
    return added(run(dtype, training) for dtype in DTYPES if dtype in info.dtypes for training in modes)
