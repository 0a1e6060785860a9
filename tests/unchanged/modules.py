"""One module of PyTorch's `module_db` on its sample inputs: forward, backward, and backward of the backward."""

from __future__ import annotations

import warnings
from contextlib import nullcontext
from typing import Any

import torch
from torch.testing._internal.common_modules import ModuleInfo

import tensorlens
from unchanged.operations import Lens, Observed, attempt, compared, facts, sharing, tensors_in

DTYPES = (torch.float32, torch.float64)


def _inputs(info: ModuleInfo, dtype: torch.dtype, training: bool) -> list[Any]:
    """The sample inputs, the same at every call."""
    torch.manual_seed(3)
    return list(info.module_inputs_func(info, "cpu", dtype, True, training))


def observe(info: ModuleInfo, sample: Any, dtype: torch.dtype, training: bool, lens: Lens) -> Observed:
    """Make the module and run it inside `lens()`; read everything outside of it."""
    seen: Observed = {}
    torch.manual_seed(5)
    given, called = sample.constructor_input, sample.forward_input
    keep: dict[str, Any] = {}

    def run() -> None:
        module = keep["module"] = info.module_cls(*given.args, **given.kwargs).to(dtype).train(training)
        if called is not None:
            keep["result"] = module(*called.args, **called.kwargs)

    def derive(again: bool) -> None:
        outputs = [output for output in tensors_in(keep["result"]) if output.requires_grad]
        leaves = [*keep["module"].parameters(), *tensors_in([called.args, called.kwargs])]
        leaves = [leaf for leaf in leaves if leaf.is_leaf and leaf.requires_grad]
        if not outputs or not leaves:
            return
        ones = [torch.ones_like(output) for output in outputs]
        if again:
            first = torch.autograd.grad(outputs, leaves, ones, create_graph=True, allow_unused=True)
            keep["first"] = first
            second = [gradient.abs().sum() for gradient in first if gradient is not None and gradient.requires_grad]
            if second:
                torch.autograd.backward(second, retain_graph=True)
        else:
            torch.autograd.backward(outputs, ones)

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with lens():
            attempt(run, seen, "forward")
            if "result" in keep:
                attempt(lambda: derive(True), seen, "backward of backward")
                attempt(lambda: derive(False), seen, "backward")
            keep["state"] = {} if "module" not in keep else keep["module"].state_dict()
    seen["warnings"] = [(entry.category, str(entry.message), entry.filename, entry.lineno) for entry in caught]
    inputs = [] if called is None else list(tensors_in([called.args, called.kwargs]))
    parameters = list(keep["module"].parameters()) if "module" in keep else []
    gradients = [leaf.grad for leaf in inputs + parameters if leaf.is_leaf and leaf.grad is not None]
    state = list(tensors_in(list(keep["state"].values())))
    everything = inputs + parameters + gradients + list(tensors_in([keep.get("result"), keep.get("first")])) + state
    seen["names"] = list(keep["state"])
    seen["text"] = repr(keep.get("module"))
    seen["sharing"] = sharing(everything)
    seen["random"] = torch.get_rng_state().numpy().tobytes()
    with torch.no_grad():
        seen["tensors"] = [facts(tensor) for tensor in everything]
    return seen


def compare(info: ModuleInfo, limit: int | None, lens: Lens = tensorlens.trace) -> tuple[int, int, list[str]]:
    """(samples, those that two plain runs give different numbers for, what differs under the lens)."""
    count, random, wrong = 0, 0, []
    for dtype in (dtype for dtype in DTYPES if dtype in info.dtypes):
        for training in (True, False) if info.train_and_eval_differ else (True,):
            runs = [_inputs(info, dtype, training)[:limit] for _ in range(3)]
            for number, (first, second, third) in enumerate(zip(*runs, strict=True)):
                plain = observe(info, first, dtype, training, nullcontext)
                again = observe(info, second, dtype, training, nullcontext)
                differs, parts = compared(plain, again, observe(info, third, dtype, training, lens))
                count, random = count + 1, random + differs
                wrong += [f"{info.formatted_name} {dtype} {training=} sample {number}: {part}" for part in parts]
    return count, random, wrong
